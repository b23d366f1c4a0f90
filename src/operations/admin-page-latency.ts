// The latency histogram of the page for people: a drawing whose bars and words keep their size at any width, and its numbers.
import { type Html, html } from './admin-page-html.ts';
import { spellCount, spellCountShort, spellShortTime, toShortTime } from './admin-page-wording.ts';
import type { LatencySummary } from './metrics-summary.ts';

type Bucket = LatencySummary['buckets'][number];

// Heights are pixels and widths are shares, so the drawing fits any width and its text is never scaled.
const topOfBars = 18;
const heightOfBars = 140;
const baseLine = topOfBars + heightOfBars;
const least = 2;

export function renderLatency(latency: LatencySummary): Html {
  const { count, sumSeconds, buckets } = latency;
  if (count === 0) return html`<p>No check yet.</p>`;
  const words = `Half of the checks took ${spellQuantile(latency, 0.5)}, 99 of 100 took ${spellQuantile(latency, 0.99)}. Mean ${spellShortTime(sumSeconds / count)}.`;
  return html`<p>${words}</p>
${drawBuckets(buckets, words)}
<p class="muted">Each bar counts the checks that took at most the time under it and more than the time to its left.</p>
<details><summary>The numbers</summary>
<table><thead><tr><th scope="col">Time</th><th scope="col" class="number">Checks</th></tr></thead>
<tbody>${buckets.map(
    (bucket, index) =>
      html`<tr><th scope="row">${spellBound(buckets, index)}</th><td class="number">${spellCount(bucket.count)}</td></tr>`,
  )}</tbody></table></details>`;
}

/** The bound of the bucket that holds the quantile: true as it stands, where an interpolation would be a guess. */
function spellQuantile({ count, buckets }: LatencySummary, quantile: number): string {
  let before = 0;
  const holding = buckets.findIndex(bucket => {
    before += bucket.count;
    return before >= count * quantile;
  });
  return spellBound(buckets, holding);
}

function spellBound(buckets: readonly Bucket[], index: number): string {
  const upTo = buckets[index]?.upToSeconds ?? Number.POSITIVE_INFINITY;
  if (upTo !== Number.POSITIVE_INFINITY) return `at most ${spellShortTime(upTo)}`;
  return `more than ${spellShortTime(lastBound(buckets))}`;
}

function lastBound(buckets: readonly Bucket[]): number {
  return buckets[buckets.length - 2]?.upToSeconds ?? 0;
}

function drawBuckets(buckets: readonly Bucket[], words: string): Html {
  const largest = Math.max(...buckets.map(bucket => bucket.count));
  const slot = 100 / buckets.length;
  const drawn = buckets.map(({ count }, index) => {
    const height = count === 0 ? 0 : Math.max(least, Math.round((count / largest) * heightOfBars));
    const middle = percent((index + 0.5) * slot);
    const label = labelOf(buckets, index);
    const bar = html`<rect class="bar" x="${percent((index + 0.1) * slot)}" width="${percent(0.8 * slot)}" y="${baseLine - height}" height="${height}" rx="2"/>`;
    const above = html`<text class="count" x="${middle}" y="${baseLine - height - 5}">${spellCountShort(count)}</text>`;
    const below = html`<text x="${middle}" y="${baseLine + 16}">${label.amount}</text><text x="${middle}" y="${baseLine + 31}">${label.unit}</text>`;
    return count === 0 ? below : html`${bar}${above}${below}`;
  });
  return html`<svg class="chart" role="img" aria-label="Histogram of the time that checks took. ${words}">${drawn}<line x1="0" x2="100%" y1="${baseLine + 0.5}" y2="${baseLine + 0.5}"/></svg>`;
}

/** The unit stands under the first bound in it only. */
function labelOf(buckets: readonly Bucket[], index: number): { readonly amount: string; readonly unit: string } {
  const upTo = buckets[index]?.upToSeconds ?? 0;
  if (upTo === Number.POSITIVE_INFINITY) return { amount: '∞', unit: '' };
  const { amount, unit } = toShortTime(upTo);
  const before = buckets[index - 1];
  return { amount, unit: before !== undefined && toShortTime(before.upToSeconds).unit === unit ? '' : unit };
}

function percent(share: number): string {
  return `${Number(share.toFixed(3))}%`;
}
