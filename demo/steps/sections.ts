// The demo: sections of steps, each with its expected outcome. A step acts on the running demo and returns the actual outcome.
import type { Demo } from '../local-demo.ts';
import type { Section } from '../run-sections.ts';
import { allowed } from './allowed.ts';
import { changes } from './changes.ts';
import { invalidTokens } from './invalid-tokens.ts';
import { keys, outage } from './outages.ts';
import { partner } from './partner.ts';
import { ambiguous, otherAccounts } from './refused-requests.ts';
import { createScene, type Tokens } from './scene.ts';
import { signingIn } from './signing-in.ts';

const sections = [signingIn, allowed, otherAccounts, partner, invalidTokens, ambiguous, changes, keys, outage];

export function sectionsOf(demo: Demo, tokens: Tokens): readonly Section[] {
  const scene = createScene(demo, tokens);
  return sections.flatMap(section => section(scene) ?? []);
}
