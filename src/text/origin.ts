// The origin of a page, as a browser sends it.

/** As the URL standard serializes it. A host with a wildcard is valid there, and equals that of no page. */
export function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
