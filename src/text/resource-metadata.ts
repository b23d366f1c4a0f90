// The URL of the metadata document of a protected resource (RFC 9728).

const maxUrlLength = 1024;

/** The rest of a sentence about an invalid resource identifier, or undefined. Never repeats the URL: it may contain a password. */
export function resourceProblem(text: string): string | undefined {
  // RFC 3986 characters only: the URL stands in a quoted string of a header. The URL parser repairs its input, so `https:///` is refused.
  if (!/^https:\/\/[A-Za-z0-9[][\w\-.~:/?#[\]@!$&'()*+,;=%]*$/.test(text)) return 'must be an absolute https:// URL';
  if (text.length > maxUrlLength) return `must not be longer than ${maxUrlLength} characters`;
  if (/^https:\/\/[^/?]*@/.test(text)) return 'must not contain a user name or a password: clients read it';
  if (text.includes('#')) return 'must not contain a fragment: remove "#" and what follows it';
  return URL.canParse(text) ? undefined : 'must be a valid URL such as https://api.example.com/subscriptions';
}

/** RFC 9728 section 3.1: the well-known part stands between host and path; a path that is `/` alone goes. Of a valid resource. */
export function resourceMetadataUrl(resource: string): string {
  const { authority, path, query } = partsOf(resource);
  return `https://${authority}${wellKnown}${path === '/' ? '' : path}${query}`;
}

/** The path of that URL, by which Envoy serves the document. */
export function resourceMetadataPath(resource: string): string {
  const { path } = partsOf(resource);
  return `${wellKnown}${path === '/' ? '' : path}`;
}

const wellKnown = '/.well-known/oauth-protected-resource';

// By the text: a URL object would normalize the path, and clients compare the resource byte for byte (RFC 9728 section 3.3).
function partsOf(resource: string) {
  const [, authority = '', path = '', query = ''] =
    /^https:\/\/([^/?]*)((?:\/[^?]*)?)((?:\?.*)?)$/s.exec(resource) ?? [];
  return { authority, path, query };
}
