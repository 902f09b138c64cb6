package org.apache.hadoop.hdfs.qjournal;

import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Collections;
import java.util.Map;

import org.apache.hadoop.conf.Configuration;

/** What nnha's JournalNodes need besides their addresses where a test has Kerberos and HTTPS. */
final class SecureNodes {
  private static final String[] TAKEN = {
    "hadoop.security.authentication", "hadoop.http.authentication.type", "dfs.http.policy",
    "dfs.namenode.kerberos.principal", "dfs.datanode.kerberos.principal",
    "dfs.journalnode.kerberos.principal", "dfs.journalnode.keytab.file",
    "dfs.journalnode.kerberos.internal.spnego.principal",
    "dfs.web.authentication.kerberos.principal", "dfs.block.access.token.enable",
  };

  private SecureNodes() { }

  private static boolean asked(Configuration conf) {
    return "HTTPS_ONLY".equals(conf.get("dfs.http.policy"));
  }

  /** The key of the address of a node's pages. */
  static String pages(Configuration conf) {
    return asked(conf) ? "dfs.journalnode.https-address" : "dfs.journalnode.http-address";
  }

  /** Add the test's keys to those of the nodes, and its stores as PKCS#12. */
  static void configure(Configuration conf, Map<String, String> site, File folder) throws IOException {
    if (!asked(conf)) return;
    for (String key : TAKEN) if (conf.get(key) != null) site.put(key, conf.get(key));
    try (PrintWriter out = new PrintWriter(new File(folder, "openssl.cnf"))) {
      out.print("openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n");
      out.print("CipherString = DEFAULT@SECLEVEL=1\n");
    }
    String service = site.get("dfs.nameservices").split(",")[0];
    site.put("dfs.ha.namenodes." + service, "nn1");
    site.put("dfs.namenode.rpc-address." + service + ".nn1", "localhost:8020");
    try {
      convert(conf.get("dfs.https.server.keystore.resource"), "ssl.server.keystore", folder, "ssl-server.xml");
      convert(conf.get("dfs.client.https.keystore.resource"), "ssl.client.truststore", folder, "ssl-client.xml");
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }

  /** Have a node use the test's KDC, and take its RSA key of 1,024 bits. */
  static ProcessBuilder inRealm(ProcessBuilder process) {
    File folder = new File(process.command().get(process.command().indexOf("--conf-dir") + 1));
    if (new File(folder, "openssl.cnf").exists()) {
      process.environment().put("OPENSSL_CONF", folder + "/openssl.cnf");
      process.environment().put("KRB5_CONFIG", System.getProperty("java.security.krb5.conf"));
    }
    return process;
  }

  private static void convert(String resource, String name, File folder, String file)
      throws IOException, GeneralSecurityException {
    Configuration ssl = new Configuration(false);
    ssl.addResource(resource);
    char[] password = ssl.get(name + ".password").toCharArray();
    KeyStore from = KeyStore.getInstance("JKS"), to = KeyStore.getInstance("PKCS12");
    try (InputStream in = new FileInputStream(ssl.get(name + ".location"))) {
      from.load(in, password);
    }
    to.load(null, null);
    for (String alias : Collections.list(from.aliases())) {
      if (from.isKeyEntry(alias)) {
        char[] own = ssl.get(name + ".keypassword", new String(password)).toCharArray();
        to.setKeyEntry(alias, from.getKey(alias, own), password, from.getCertificateChain(alias));
      } else {
        to.setCertificateEntry(alias, from.getCertificate(alias));
      }
    }
    File store = new File(folder, name + ".p12");
    try (OutputStream out = new FileOutputStream(store)) {
      to.store(out, password);
    }
    ssl.set(name + ".location", store.toString());
    try (OutputStream out = new FileOutputStream(new File(folder, file))) {
      ssl.writeXml(out);
    }
  }
}
