// HTML by template literal: whatever text is put into it is escaped, so that only markup written in our own source is markup.

export interface Html {
  readonly kind: 'html';
  readonly markup: string;
}

export type HtmlPart = Html | string | number | readonly Html[];

export function html(literals: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  const markup = literals.reduce((before, literal, index) => before + toMarkup(parts[index - 1] ?? '') + literal);
  return { kind: 'html', markup };
}

export const nothing: Html = { kind: 'html', markup: '' };

function toMarkup(part: HtmlPart): string {
  if (typeof part === 'string') return escaped(part);
  if (typeof part === 'number') return String(part);
  return 'markup' in part ? part.markup : part.map(each => each.markup).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, character => entities[character] ?? '');
}
