// A browser that logs a user in: follows redirects, keeps cookies, submits the login forms, and stops at the redirect URI.

const redirectLimit = 20;
/** Some providers ask for the name first and then for the password. */
const formLimit = 2;

/** The parameters with which the provider sends the user back to `redirectUri`. */
export async function logInWithBrowser(
  startUrl: string,
  fields: Readonly<Record<string, string>>,
  redirectUri: string,
): Promise<URLSearchParams> {
  const cookies = new Map<string, string>();
  let url = startUrl;
  let form: URLSearchParams | undefined;
  let forms = 0;
  for (let i = 0; i < redirectLimit; i++) {
    const answer: Response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: Array.from(cookies, ([name, value]) => `${name}=${value}`).join('; ') },
      ...(form === undefined ? {} : { method: 'POST', body: form }),
    });
    for (const line of answer.headers.getSetCookie()) keepCookie(cookies, line);
    const page = await answer.text();
    const location = answer.headers.get('location');
    if (location !== null) {
      url = new URL(location, url).href;
      form = undefined;
      if (url.startsWith(redirectUri)) return new URL(url).searchParams;
      continue;
    }
    const action = /<form[^>]*\saction="([^"]+)"/.exec(page)?.[1];
    if (action === undefined || forms === formLimit)
      throw new Error(`${answer.status} in the place of a login form: ${page.slice(0, 500)}`);
    url = new URL(action.replaceAll('&amp;', '&'), url).href;
    form = new URLSearchParams(fields);
    forms += 1;
  }
  throw new Error(`more than ${redirectLimit} redirects`);
}

// One host, so names are enough. `Secure` does not matter on loopback.
function keepCookie(cookies: Map<string, string>, line: string): void {
  const [, name = '', value = ''] = /^([^=;]+)=([^;]*)/.exec(line) ?? [];
  if (value === '' || /;\s*max-age=0/i.test(line)) cookies.delete(name);
  else cookies.set(name, value);
}
