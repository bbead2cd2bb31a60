import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import software.amazon.event.ruler.Machine;

/**
 * A word is a key of its own, since a rule's list means any of it; places are whole numbers of the seventh decimal. It knows no
 * batches: a batch is one event after another.
 */
final class EventRuler extends Peer {
    private final Machine machine = new Machine();
    private final List<String> events = new ArrayList<>();

    private static long whole(JsonNode degrees) {
        return Math.round(degrees.asDouble() * 1e7);
    }

    @Override
    void add(int row, JsonNode subscription) throws Exception {
        StringBuilder rule = new StringBuilder("{");
        for (String word : words(subscription)) rule.append('"').append(word).append("\":[\"y\"],");
        JsonNode box = subscription.get("box");
        rule.append(range("x", box.get(0), box.get(2))).append(',').append(range("y", box.get(1), box.get(3))).append('}');
        machine.addRule(Integer.toString(row), rule.toString());
    }

    private static String range(String name, JsonNode low, JsonNode high) {
        return "\"" + name + "\":[{\"numeric\":[\">=\"," + whole(low) + ",\"<=\"," + whole(high) + "]}]";
    }

    @Override
    void keep(JsonNode event, String text) {
        StringBuilder json = new StringBuilder("{");
        for (JsonNode word : event.get("words")) json.append('"').append(word.asText()).append("\":\"y\",");
        json.append("\"x\":").append(whole(event.get("x"))).append(",\"y\":").append(whole(event.get("y"))).append('}');
        events.add(json.toString());
    }

    @Override
    List<Integer> match(int event) throws Exception {
        List<Integer> rows = new ArrayList<>();
        for (String name : machine.rulesForJSONEvent(events.get(event))) rows.add(Integer.parseInt(name));
        return rows;
    }

    public static void main(String[] arguments) throws Exception {
        new EventRuler().run(arguments);
    }
}
