// Parts of a self-contained SVG for light and dark pages: colours are classes; no external resources, no script.

const palette = {
  ink: ['#1f2933', '#e4e9ef'],
  faint: ['#5f6b78', '#9aa7b4'],
  grid: ['#dde3ea', '#39424d'],
  page: ['#ffffff', '#0f141a'],
  product: ['#1a7f64', '#3fb68f'],
  floor: ['#8a94a0', '#7d8894'],
  peer: ['#b4622d', '#e09a5f'],
  mark: ['#b7791f', '#d9a441'],
} as const satisfies Readonly<Record<string, readonly [light: string, dark: string]>>;
export type Colour = keyof typeof palette;

const font = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

export function svgDocument(width: number, height: number, title: string, parts: readonly string[]): string {
  const rules = (theme: 0 | 1): string =>
    Object.entries(palette)
      .map(([name, colours]) => `.f-${name}{fill:${colours[theme]}}.s-${name}{stroke:${colours[theme]}}`)
      .join('');
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" font-family="${font}" font-size="12">`,
    `<style>${rules(0)}@media (prefers-color-scheme: dark){${rules(1)}}</style>`,
    rect(0, 0, width, height, 'page'),
    ...parts,
    '</svg>\n',
  ].join('\n');
}

export function text(x: number, y: number, content: string, colour: Colour, attributes = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" class="f-${colour}" ${attributes}>${escaped(content)}</text>`;
}

export function line(x1: number, y1: number, x2: number, y2: number, colour: Colour, attributes = ''): string {
  return `<path d="M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}" class="s-${colour}" fill="none" ${attributes}/>`;
}

export function rect(x: number, y: number, width: number, height: number, colour: Colour, attributes = ''): string {
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" class="f-${colour}" ${attributes}/>`;
}

/** Round tick values from 0 to at least `highest`, in five steps or fewer. */
export function linearMarks(highest: number): readonly number[] {
  const top = highest > 0 ? highest : 1;
  const power = 10 ** Math.floor(Math.log10(top / 3));
  const step = [1, 2, 2.5, 5, 10].map(factor => factor * power).find(each => top / each <= 5) ?? top;
  return Array.from({ length: Math.ceil(top / step - 1e-9) + 1 }, (_, index) => index * step);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
