// mkdirs from threads of one client JVM, as fast as they are answered; for tests/campaigns/bench/mkdirs.py.
package nnha;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;

public final class MkdirsLoad {
  public static void main(String[] arguments) throws Exception {
    double seconds = Double.parseDouble(arguments[0]);
    int rounds = Integer.parseInt(arguments[1]);
    Configuration conf = new HdfsConfiguration();
    FileSystem files = FileSystem.newInstance(conf);
    measure(files, 16, seconds, "warm"); // the JVM compiles, connections are made
    for (int round = 0; round < rounds; round++) {
      for (int threads : new int[] {1, 16, 64}) {
        System.out.println(threads + " " + measure(files, threads, seconds, "r" + round));
        System.out.flush();
      }
    }
    files.close();
  }

  private static double measure(FileSystem files, int threads, double seconds, String name)
      throws Exception {
    AtomicLong done = new AtomicLong();
    CountDownLatch ended = new CountDownLatch(threads);
    Exception[] failure = new Exception[1];
    long began = System.nanoTime();
    long end = began + (long) (seconds * 1e9);
    for (int i = 0; i < threads; i++) {
      Path parent = new Path("/bench/" + name + "/" + threads + "/" + i);
      new Thread(() -> {
        try {
          for (int n = 0; System.nanoTime() < end; n++) {
            files.mkdirs(new Path(parent, "directory" + n));
            done.incrementAndGet();
          }
        } catch (Exception e) {
          failure[0] = e;
        } finally {
          ended.countDown();
        }
      }).start();
    }
    ended.await();
    if (failure[0] != null) {
      throw failure[0];
    }
    return done.get() / ((System.nanoTime() - began) / 1e9);
  }
}
