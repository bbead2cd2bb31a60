import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Reads subscriptions and events, one JSON object a line, asks an engine, and prints answers and CPU seconds of this thread. */
abstract class Peer {
    static final ObjectMapper JSON = new ObjectMapper();

    abstract void add(int row, JsonNode subscription) throws Exception;

    /** Subscriptions are in; what is not done yet is done now. */
    void ready() throws Exception {}

    abstract List<Integer> match(int event) throws Exception;

    /** All events at once, for engines that know batches. */
    void matchAll(int events) throws Exception {
        for (int event = 0; event < events; event++) match(event);
    }

    abstract void keep(JsonNode event, String text) throws Exception;

    void run(String[] arguments) throws Exception {
        int row = 0;
        try (BufferedReader lines = Files.newBufferedReader(Path.of(arguments[0]))) {
            for (String line; (line = lines.readLine()) != null; row++) add(row, JSON.readTree(line));
        }
        ready();
        List<String> texts = Files.readAllLines(Path.of(arguments[1]));
        for (String text : texts) keep(JSON.readTree(text), text);
        double warmUp = Double.parseDouble(arguments[2]);
        ObjectNode result = JSON.createObjectNode();
        ArrayNode answers = result.putArray("answers");
        for (int event = 0; event < texts.size(); event++) {
            ArrayNode found = answers.addArray();
            match(event).stream().sorted().forEach(found::add);
        }
        long until = System.nanoTime() + (long) (warmUp * 1e9);
        while (System.nanoTime() < until) matchAll(texts.size());
        result.put("batch", least(() -> matchAll(texts.size())) / texts.size());
        result.put("single", least(() -> { for (int event = 0; event < texts.size(); event++) match(event); }) / texts.size());
        System.out.println(JSON.writeValueAsString(result));
        System.exit(0);
    }

    interface Act { void run() throws Exception; }

    private static double least(Act act) throws Exception {
        var threads = ManagementFactory.getThreadMXBean();
        double least = Double.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            long start = threads.getCurrentThreadCpuTime();
            act.run();
            least = Math.min(least, (threads.getCurrentThreadCpuTime() - start) / 1e9);
        }
        return least;
    }

    static List<String> words(JsonNode of) {
        List<String> words = new ArrayList<>();
        for (JsonNode word : of.get("words")) words.add(word.asText());
        return words;
    }
}
