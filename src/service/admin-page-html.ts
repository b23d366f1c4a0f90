// HTML by template literal: every text put into it is escaped, so only markup written in our own source is markup.

export interface Html {
  readonly markup: string;
}

type HtmlPart = Html | string | number | readonly HtmlPart[];

export function html(literals: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return { markup: String.raw({ raw: literals }, ...parts.map(toMarkup)) };
}

function toMarkup(part: HtmlPart): string {
  if (typeof part === 'object') return 'markup' in part ? part.markup : part.map(toMarkup).join('');
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}
