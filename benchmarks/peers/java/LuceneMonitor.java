import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.Term;
import org.apache.lucene.monitor.MatchingQueries;
import org.apache.lucene.monitor.Monitor;
import org.apache.lucene.monitor.MonitorQuery;
import org.apache.lucene.monitor.MonitorConfiguration;
import org.apache.lucene.monitor.MultiMatchingQueries;
import org.apache.lucene.monitor.QueryMatch;
import org.apache.lucene.monitor.TermFilteredPresearcher;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.TermQuery;

/** Every word must be there and the point in the box; the presearcher goes by words. */
final class LuceneMonitor extends Peer {
    private final Monitor monitor;
    private final List<MonitorQuery> waiting = new ArrayList<>();
    private final List<JsonNode> events = new ArrayList<>();

    LuceneMonitor() throws Exception {
        monitor = new Monitor(new WhitespaceAnalyzer(), new TermFilteredPresearcher(), new MonitorConfiguration());
    }

    @Override
    void add(int row, JsonNode subscription) throws Exception {
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        for (String word : words(subscription)) all.add(new TermQuery(new Term("about", word)), Occur.MUST);
        JsonNode box = subscription.get("box");
        all.add(DoublePoint.newRangeQuery("x", box.get(0).asDouble(), box.get(2).asDouble()), Occur.MUST);
        all.add(DoublePoint.newRangeQuery("y", box.get(1).asDouble(), box.get(3).asDouble()), Occur.MUST);
        waiting.add(new MonitorQuery(Integer.toString(row), all.build()));
        if (waiting.size() == 5000) ready();
    }

    @Override
    void ready() throws Exception {
        monitor.register(waiting);
        waiting.clear();
    }

    @Override
    void keep(JsonNode event, String text) {
        events.add(event);
    }

    private Document document(JsonNode event) {
        Document document = new Document();
        for (JsonNode word : event.get("words")) document.add(new StringField("about", word.asText(), Field.Store.NO));
        document.add(new DoublePoint("x", event.get("x").asDouble()));
        document.add(new DoublePoint("y", event.get("y").asDouble()));
        return document;
    }

    @Override
    List<Integer> match(int event) throws Exception {
        MatchingQueries<QueryMatch> found = monitor.match(document(events.get(event)), QueryMatch.SIMPLE_MATCHER);
        List<Integer> rows = new ArrayList<>();
        for (QueryMatch match : found.getMatches()) rows.add(Integer.parseInt(match.getQueryId()));
        return rows;
    }

    @Override
    void matchAll(int count) throws Exception {
        Document[] batch = new Document[count];
        for (int event = 0; event < count; event++) batch[event] = document(events.get(event));
        MultiMatchingQueries<QueryMatch> found = monitor.match(batch, QueryMatch.SIMPLE_MATCHER);
        if (found.getBatchSize() != count) throw new IllegalStateException("a batch of another size");
    }

    public static void main(String[] arguments) throws Exception {
        new LuceneMonitor().run(arguments);
    }
}
