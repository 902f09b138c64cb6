// Hadoop's own QuorumJournalManager and JournalNodes under the load of tests/campaigns/bench/journal.py.
//
//   JournalLoad node DIR           a JournalNode; prints "RPC-PORT HTTP-PORT"
//   JournalLoad drive URI SECONDS  a writer; prints one JSON object and ends
//   JournalLoad turns URI          a writer; for each line SECONDS the p50 of single commits
//
// It stands in this package because only here an edit can be made without a NameNode.
package org.apache.hadoop.hdfs.server.namenode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.qjournal.client.QuorumJournalManager;
import org.apache.hadoop.hdfs.qjournal.server.JournalNode;
import org.apache.hadoop.hdfs.server.protocol.NamespaceInfo;

public final class JournalLoad {
  private static final int LAYOUT = -66;
  private static final int EDIT_BYTES = 200;
  private static final int SHARES = 500;
  private static final double WARM_SECONDS = 6;
  private static final NamespaceInfo NAMESPACE =
      new NamespaceInfo(4711, "CID-bench", "BP-bench", 0L);

  private final URI uri;
  private final Configuration conf;
  private final FSEditLogOp.DeleteOp edit =
      FSEditLogOp.DeleteOp.getInstance(new FSEditLogOp.OpInstanceCache());
  private QuorumJournalManager writer;
  private EditLogOutputStream stream;
  private long next = 1;

  private JournalLoad(URI uri, Configuration conf) {
    this.uri = uri;
    this.conf = conf;
    // 200 bytes with its frame, as the edit of the other side of the bench.
    char[] name = new char[160];
    Arrays.fill(name, 'd');
    edit.setPath("/" + new String(name)).setTimestamp(0);
    edit.setRpcClientId(new byte[0]);
    edit.setRpcCallId(-1);
  }

  public static void main(String[] arguments) throws Exception {
    Configuration conf = new HdfsConfiguration();
    if (arguments[0].equals("node")) {
      serve(conf, arguments[1]);
    } else if (arguments[0].equals("turns")) {
      new JournalLoad(URI.create(arguments[1]), conf).takeTurns();
      System.exit(0);
    } else {
      System.out.println(
          new JournalLoad(URI.create(arguments[1]), conf).measure(Double.parseDouble(arguments[2])));
      System.exit(0);
    }
  }

  private static void serve(Configuration conf, String folder) throws Exception {
    conf.set("dfs.journalnode.edits.dir", folder);
    conf.set("dfs.journalnode.rpc-address", "127.0.0.1:0");
    conf.set("dfs.journalnode.http-address", "127.0.0.1:0");
    JournalNode node = new JournalNode();
    node.setConf(conf);
    node.start();
    System.out.println(
        node.getBoundIpcAddress().getPort() + " " + node.getBoundHttpAddress().getPort());
    System.in.read(); // until whoever started us goes away
    System.exit(0);
  }

  private void takeTurns() throws Exception {
    open();
    commits(1, WARM_SECONDS);
    System.out.println("ready");
    BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
    for (String line = asked.readLine(); line != null; line = asked.readLine()) {
      System.out.println(commits(1, Double.parseDouble(line))[0]);
    }
  }

  private void open() throws Exception {
    writer = manager();
    writer.format(NAMESPACE, false);
    writer.recoverUnfinalizedSegments();
    begin();
  }

  private String measure(double seconds) throws Exception {
    open();
    commits(1, seconds / 2); // the JVM's own warming up
    double[] batches = commits(64 * 1024 / EDIT_BYTES, seconds);
    double[] large = commits(256 * 1024 / EDIT_BYTES, seconds);
    double[] single = commits(1, seconds);
    double ofOne = 0;
    double ofMany = 0;
    int rounds = 3;
    for (int round = 0; round < rounds; round++) {
      ofOne += takeover(EDIT_BYTES) / rounds;
      ofMany += takeover(64 * 1024 * 1024) / rounds;
    }
    return String.format(
        "{\"single_p50_ms\": %.4f, \"single_p99_ms\": %.4f, \"batch_ops_per_second\": %.1f,"
            + " \"batch_megabytes_per_second\": %.2f, \"large_megabytes_per_second\": %.2f,"
            + " \"takeover_one_seconds\": %.4f, \"takeover_64mb_seconds\": %.4f,"
            + " \"single_ms\": %s}",
        single[0], single[1], batches[2], batches[2] * EDIT_BYTES / 1e6,
        large[2] * EDIT_BYTES / 1e6, ofOne, ofMany,
        Arrays.toString(Arrays.copyOfRange(single, 3, single.length)));
  }

  private QuorumJournalManager manager() throws Exception {
    QuorumJournalManager made = new QuorumJournalManager(conf, uri, NAMESPACE, "ns1");
    made.setOutputBufferCapacity(512 * 1024);
    return made;
  }

  private void begin() throws Exception {
    stream = writer.startLogSegment(next, LAYOUT);
  }

  private void commit(int edits) throws Exception {
    for (int i = 0; i < edits; i++) {
      edit.setTransactionId(next++);
      stream.write(edit);
    }
    stream.setReadyToFlush();
    stream.flush();
  }

  /** Commits, one after the other; p50 and p99 in milliseconds, edits per second, distribution. */
  private double[] commits(int edits, double seconds) throws Exception {
    long start = System.nanoTime();
    long warm = start + (long) (seconds / 4 * 1e9);
    long end = start + (long) (seconds * 1e9);
    double[] took = new double[1 << 16];
    int count = 0;
    for (long now = start; now < end && count < took.length; ) {
      commit(edits);
      long then = System.nanoTime();
      if (now > warm) {
        took[count++] = (then - now) / 1e6;
      }
      now = then;
    }
    double rate = (double) count * edits / ((System.nanoTime() - warm) / 1e9);
    double[] sorted = Arrays.copyOf(took, count);
    Arrays.sort(sorted);
    double[] found = new double[3 + SHARES];
    found[0] = sorted[count / 2];
    found[1] = sorted[count * 99 / 100];
    found[2] = rate;
    for (int share = 0; share < SHARES; share++) {
      found[3 + share] = sorted[(int) ((long) count * share / SHARES)];
    }
    return found;
  }

  /** Seconds that a new writer takes to win and to finalize a segment of so many bytes. */
  private double takeover(long bytes) throws Exception {
    stream.close();
    writer.finalizeLogSegment(segmentStart(), next - 1);
    started = next;
    begin();
    for (long left = bytes; left > 0; left -= 256 * 1024) {
      commit((int) Math.max(1, Math.min(left, 256 * 1024) / EDIT_BYTES));
    }
    QuorumJournalManager successor = manager();
    long before = System.nanoTime();
    successor.recoverUnfinalizedSegments();
    double seconds = (System.nanoTime() - before) / 1e9;
    writer.close();
    writer = successor;
    started = next;
    begin();
    commit(1);
    return seconds;
  }

  private long started = 1;

  private long segmentStart() {
    return started;
  }
}
