// Signs tokens with Java libraries: reads the job named by the first argument, prints one JSON line per token.
import com.auth0.jwt.JWT;
import com.auth0.jwt.algorithms.Algorithm;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.JWSObject;
import com.nimbusds.jose.JWSSigner;
import com.nimbusds.jose.Payload;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.crypto.RSASSASigner;
import io.jsonwebtoken.Jwts;
import java.io.File;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.RSAPrivateKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

public class Producers {
  static final ObjectMapper json = new ObjectMapper();

  interface Signer {
    String sign(String alg, String kid, PrivateKey key, Map<String, Object> claims) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    JsonNode job = json.readTree(new File(args[0]));
    Map<String, Signer> libraries = new LinkedHashMap<>();
    libraries.put("Nimbus", Producers::nimbus);
    libraries.put("JJWT", Producers::jjwt);
    libraries.put("java-jwt", Producers::javaJwt);
    for (Map.Entry<String, Signer> library : libraries.entrySet()) {
      for (JsonNode key : job.get("keys")) {
        for (JsonNode claims : job.get("claims")) {
          Map<String, Object> line = new LinkedHashMap<>();
          String alg = key.get("alg").asText();
          line.put("library", library.getKey());
          line.put("alg", alg);
          try {
            PrivateKey privateKey = privateKey(alg, key.get("pem").asText());
            @SuppressWarnings("unchecked")
            Map<String, Object> all = json.convertValue(claims, Map.class);
            line.put("token", library.getValue().sign(alg, key.get("kid").asText(), privateKey, all));
          } catch (Exception unsupported) {
            // A line without a token says so.
          }
          System.out.println(json.writeValueAsString(line));
        }
      }
    }
  }

  static PrivateKey privateKey(String alg, String pem) throws Exception {
    String body = pem.replaceAll("-----[A-Z ]+-----", "").replaceAll("\\s", "");
    String type = alg.startsWith("ES") ? "EC" : alg.startsWith("Ed") ? "Ed25519" : "RSA";
    return KeyFactory.getInstance(type).generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(body)));
  }

  static String nimbus(String alg, String kid, PrivateKey key, Map<String, Object> claims) throws Exception {
    JWSSigner signer = key instanceof ECPrivateKey ec ? new ECDSASigner(ec) : new RSASSASigner(key);
    JWSObject object = new JWSObject(new JWSHeader.Builder(JWSAlgorithm.parse(alg)).keyID(kid).build(), new Payload(claims));
    object.sign(signer);
    return object.serialize();
  }

  static String jjwt(String alg, String kid, PrivateKey key, Map<String, Object> claims) {
    return Jwts.builder().header().keyId(kid).and().claims(claims).signWith(key, signatureOf(alg)).compact();
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  static io.jsonwebtoken.security.SignatureAlgorithm signatureOf(String alg) {
    return (io.jsonwebtoken.security.SignatureAlgorithm) Jwts.SIG.get().forKey(alg);
  }

  static String javaJwt(String alg, String kid, PrivateKey key, Map<String, Object> claims) {
    Algorithm algorithm =
        switch (alg) {
          case "RS256" -> Algorithm.RSA256(null, (RSAPrivateKey) key);
          case "RS384" -> Algorithm.RSA384(null, (RSAPrivateKey) key);
          case "RS512" -> Algorithm.RSA512(null, (RSAPrivateKey) key);
          case "ES256" -> Algorithm.ECDSA256(null, (ECPrivateKey) key);
          case "ES384" -> Algorithm.ECDSA384(null, (ECPrivateKey) key);
          case "ES512" -> Algorithm.ECDSA512(null, (ECPrivateKey) key);
          default -> throw new IllegalArgumentException(alg);
        };
    return JWT.create().withKeyId(kid).withPayload(claims).sign(algorithm);
  }
}
