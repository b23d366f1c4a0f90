// A spring-authorization-server of Spring Boot, with the type and the claims that a customizer adds to access tokens.
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.oauth2.server.authorization.OAuth2TokenType;
import org.springframework.security.oauth2.server.authorization.token.JwtEncodingContext;
import org.springframework.security.oauth2.server.authorization.token.OAuth2TokenCustomizer;

@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
public class Main {
  @Bean
  OAuth2TokenCustomizer<JwtEncodingContext> customizer() {
    return context -> {
      // An ID token would look like an access token.
      if (!OAuth2TokenType.ACCESS_TOKEN.equals(context.getTokenType())) return;
      context.getJwsHeader().type("at+jwt");
      context.getClaims()
          .claim("client_id", context.getRegisteredClient().getClientId())
          .claim("account", "acme")
          .claim("roles", List.of("owner"));
    };
  }

  public static void main(String[] args) {
    var server = "spring.security.oauth2.authorizationserver.";
    var client = server + "client.billing.registration.";
    var app = new SpringApplication(Main.class);
    app.setDefaultProperties(Map.of(
        "server.port", System.getenv("PORT"),
        server + "issuer", System.getenv("URL"),
        client + "client-id", "billing",
        client + "client-secret", "{noop}secret",
        client + "client-authentication-methods", "client_secret_post",
        client + "authorization-grant-types", "client_credentials",
        client + "scopes", "orders:read"));
    app.run();
  }
}
