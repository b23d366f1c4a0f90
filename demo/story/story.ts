// The story of the demo: chapters of steps, each with its expected outcome. A step acts on the running demo and returns the actual outcome.
import type { Demo } from '../local-demo.ts';
import type { Chapter } from '../run-story.ts';
import { allowed } from './allowed.ts';
import { invalidTokens } from './invalid-tokens.ts';
import { keys, outage } from './outages.ts';
import { partner } from './partner.ts';
import { ambiguous, otherAccounts } from './refused-requests.ts';
import { createScene, type Tokens } from './scene.ts';
import { signingIn } from './signing-in.ts';

const chapters = [signingIn, allowed, otherAccounts, partner, invalidTokens, ambiguous, keys, outage];

export function story(demo: Demo, tokens: Tokens): readonly Chapter[] {
  const scene = createScene(demo, tokens);
  return chapters.flatMap(chapter => chapter(scene) ?? []);
}
