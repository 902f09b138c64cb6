package nnha;

import java.util.Map;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.AuthorizeCallback;
import javax.security.sasl.RealmCallback;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslClient;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;

/** The JDK's DIGEST-MD5 with Hadoop's names and answers to its questions. */
public final class DigestPeer {
  private SaslClient client;
  private SaslServer server;

  private static CallbackHandler answers(String user, String password) {
    return callbacks -> {
      for (Callback each : callbacks) {
        if (each instanceof NameCallback) {
          ((NameCallback) each).setName(user);
        } else if (each instanceof PasswordCallback) {
          ((PasswordCallback) each).setPassword(password.toCharArray());
        } else if (each instanceof RealmCallback) {
          ((RealmCallback) each).setText(((RealmCallback) each).getDefaultText());
        } else if (each instanceof AuthorizeCallback) {
          AuthorizeCallback asked = (AuthorizeCallback) each;
          asked.setAuthorized(asked.getAuthenticationID().equals(asked.getAuthorizationID()));
          asked.setAuthorizedID(asked.getAuthorizationID());
        }
      }
    };
  }

  private static Map<String, String> properties(String qop, String cipher) {
    return cipher.isEmpty()
        ? Map.of(Sasl.QOP, qop, Sasl.SERVER_AUTH, "true")
        : Map.of(Sasl.QOP, qop, Sasl.SERVER_AUTH, "true",
            "com.sun.security.sasl.digest.cipher", cipher);
  }

  public void beginClient(String user, String password, String qop, String cipher)
      throws SaslException {
    client = Sasl.createSaslClient(new String[] {"DIGEST-MD5"}, null, "", "default",
        properties(qop, cipher), answers(user, password));
  }

  public void beginServer(String user, String password, String qop, String cipher)
      throws SaslException {
    server = Sasl.createSaslServer("DIGEST-MD5", "", "default",
        properties(qop, cipher), answers(user, password));
  }

  public byte[] step(byte[] token) throws SaslException {
    return client != null ? client.evaluateChallenge(token) : server.evaluateResponse(token);
  }

  public boolean isComplete() {
    return client != null ? client.isComplete() : server.isComplete();
  }

  public String agreed() {
    return String.valueOf(client != null ? client.getNegotiatedProperty(Sasl.QOP)
        : server.getNegotiatedProperty(Sasl.QOP));
  }

  public int mostPlainBytes() {
    return Integer.parseInt((String) (client != null
        ? client.getNegotiatedProperty(Sasl.RAW_SEND_SIZE)
        : server.getNegotiatedProperty(Sasl.RAW_SEND_SIZE)));
  }

  public byte[] wrap(byte[] text) throws SaslException {
    return client != null ? client.wrap(text, 0, text.length) : server.wrap(text, 0, text.length);
  }

  public byte[] unwrap(byte[] token) throws SaslException {
    return client != null ? client.unwrap(token, 0, token.length)
        : server.unwrap(token, 0, token.length);
  }
}
