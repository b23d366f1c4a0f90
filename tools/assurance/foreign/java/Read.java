// Reads queries or paths (one JSON string a line) with Java's parsers and routers. Prints, for each line, a JSON object: parser -> the
// accounts that it reads. Arguments: `queries`, or `paths` and a JSON object of `templates`, most specific first, and `narrowed`.

import com.fasterxml.jackson.databind.ObjectMapper;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.tomcat.util.buf.MessageBytes;
import org.apache.tomcat.util.http.Parameters;
import org.springframework.http.HttpMethod;
import org.springframework.http.server.PathContainer;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.util.AntPathMatcher;
import org.springframework.web.bind.ServletRequestDataBinder;
import org.springframework.web.servlet.mvc.method.annotation.ExtendedServletRequestDataBinder;
import org.springframework.web.util.UriComponentsBuilder;
import org.springframework.web.util.UriUtils;
import org.springframework.web.util.UrlPathHelper;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

public final class Read {
    static final String PARAMETER = "account_id";

    interface Parser {
        List<String> read(String query) throws Exception;
    }

    public static class Text {
        private String value;

        public String getAccount_id() {
            return value;
        }

        public void setAccount_id(String value) {
            this.value = value;
        }
    }

    public static class Texts {
        private List<String> values;

        public List<String> getAccount_id() {
            return values;
        }

        public void setAccount_id(List<String> values) {
            this.values = values;
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Map<String, Parser> parsers = args[0].equals("paths")
            ? routers(json.readValue(args[1], Layout.class))
            : queryParsers();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder output = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String text = json.readValue(line, String.class);
            Map<String, List<String>> read = new LinkedHashMap<>();
            for (Map.Entry<String, Parser> each : parsers.entrySet()) read.put(each.getKey(), read(each.getValue(), text));
            output.append(json.writeValueAsString(read)).append('\n');
        }
        System.out.write(output.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }

    static Map<String, Parser> queryParsers() {
        Map<String, Parser> parsers = new LinkedHashMap<>();
        parsers.put("Netty", query -> values(new QueryStringDecoder("/?" + query).parameters()));
        parsers.put("Netty, ; is no separator", query -> values(
            new QueryStringDecoder("/?" + query, StandardCharsets.UTF_8, true, 1024, true).parameters()));
        parsers.put("Tomcat", query -> List.of(orEmpty(tomcat(query).getParameterValues(PARAMETER))));
        parsers.put("Spring WebFlux", query -> {
            URI uri = new URI("http://api.test/?" + query);
            return values(MockServerHttpRequest.method(HttpMethod.GET, uri).build().getQueryParams());
        });
        parsers.put("Spring UriComponentsBuilder", query -> {
            List<String> read = new ArrayList<>();
            UriComponentsBuilder.newInstance().query(query).build().getQueryParams().forEach((name, values) -> {
                if (!UriUtils.decode(name, StandardCharsets.UTF_8).equals(PARAMETER)) return;
                for (String value : values) if (value != null) read.add(UriUtils.decode(value, StandardCharsets.UTF_8));
            });
            return read;
        });
        parsers.put("Spring MVC, a text of a form object", query -> {
            Text form = new Text();
            new ExtendedServletRequestDataBinder(form).bind(servletRequest(query));
            return form.getAccount_id() == null ? List.of() : List.of(form.getAccount_id());
        });
        parsers.put("Spring MVC, a list of a form object", query -> {
            Texts form = new Texts();
            new ServletRequestDataBinder(form).bind(servletRequest(query));
            List<String> read = new ArrayList<>();
            if (form.getAccount_id() != null) for (String each : form.getAccount_id()) if (each != null) read.add(each);
            return read;
        });
        return parsers;
    }

    record Layout(List<String> templates, List<String> narrowed) {
        List<String> served(String template, String account) {
            if (narrowed.contains(template)) return List.of("another route");
            return account == null ? List.of() : List.of(account);
        }

        static String pattern(String template) {
            return template.replaceAll(":([a-z_]+)", "{$1}").replaceAll("/[*]$", "/**");
        }
    }

    static Map<String, Parser> routers(Layout layout) {
        Map<String, Parser> routers = new LinkedHashMap<>();
        for (boolean caseSensitive : new boolean[] {true, false}) {
            PathPatternParser parser = new PathPatternParser();
            parser.setCaseSensitive(caseSensitive);
            String mode = caseSensitive ? "" : ", case ignored";
            Map<String, PathPattern> patterns = new LinkedHashMap<>();
            for (String each : layout.templates()) patterns.put(each, parser.parse(Layout.pattern(each)));
            routers.put("Spring PathPattern" + mode, target -> {
                PathContainer path = PathContainer.parsePath(withoutSlash(target.split("[?]", 2)[0]));
                for (Map.Entry<String, PathPattern> each : patterns.entrySet()) {
                    PathPattern.PathMatchInfo match = each.getValue().matchAndExtract(path);
                    if (match != null) return layout.served(each.getKey(), match.getUriVariables().get(PARAMETER));
                }
                return List.of();
            });
            AntPathMatcher matcher = new AntPathMatcher();
            matcher.setCaseSensitive(caseSensitive);
            UrlPathHelper helper = new UrlPathHelper();
            routers.put("Spring AntPathMatcher" + mode, target -> {
                MockHttpServletRequest request = new MockHttpServletRequest("GET", target.split("[?]", 2)[0]);
                String path = withoutSlash(helper.getRequestUri(request));
                for (String each : layout.templates()) {
                    if (!matcher.match(Layout.pattern(each), path)) continue;
                    return layout.served(each, matcher.extractUriTemplateVariables(Layout.pattern(each), path).get(PARAMETER));
                }
                return List.of();
            });
        }
        return routers;
    }

    static String withoutSlash(String path) {
        return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
    }

    static List<String> read(Parser parser, String query) {
        try {
            return parser.read(query);
        } catch (Exception refused) {
            // The parser refuses the query.
            return List.of();
        }
    }

    static List<String> values(Map<String, List<String>> parameters) {
        List<String> read = new ArrayList<>();
        for (String each : parameters.getOrDefault(PARAMETER, List.of())) if (each != null) read.add(each);
        return read;
    }

    static Parameters tomcat(String query) {
        Parameters parameters = new Parameters();
        MessageBytes bytes = MessageBytes.newInstance();
        byte[] text = query.getBytes(StandardCharsets.UTF_8);
        bytes.setBytes(text, 0, text.length);
        parameters.setQuery(bytes);
        parameters.setQueryStringCharset(StandardCharsets.UTF_8);
        parameters.handleQueryParameters();
        return parameters;
    }

    static MockHttpServletRequest servletRequest(String query) {
        MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");
        Parameters parameters = tomcat(query);
        for (String name : java.util.Collections.list(parameters.getParameterNames()))
            request.addParameter(name, parameters.getParameterValues(name));
        return request;
    }

    static String[] orEmpty(String[] values) {
        return values == null ? new String[0] : values;
    }
}
