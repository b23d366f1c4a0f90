// Writes sets of classes of paths as templates: the fewest that say the same, none of which covers a class outside the set.
import { coversTemplate, overlapsTemplate } from '../../authz/route-template.ts';
import type { ClassNode, PathClass, PathClasses } from './path-classes.ts';

export interface Covered {
  readonly path: string;
  /** Templates of what the path covers and the row is not about. */
  readonly except: readonly string[];
  readonly pathClass: PathClass;
}

/** More exceptions are no shorter than what they save. */
const maxExceptions = 8;

export function createCover({ templates, root }: Pick<PathClasses, 'templates' | 'root'>) {
  /** For each template, the number of the classes that it covers. */
  const sizes: number[] = templates.map(() => 0);
  // The narrowest first: a longer template, or one with more literals.
  const ranks = templates.map(text => text.split('/').length * 1000 + text.split(/\/[^:*]/).length);

  return {
    count(pathClass: PathClass): void {
      if (!pathClass.isLoose) for (const id of pathClass.templates) sizes[id] = (sizes[id] ?? 0) + 1;
    },

    cover(classes: Iterable<PathClass>): readonly Covered[] {
      const inTree = new Set<PathClass>();
      const looseOnes: PathClass[] = [];
      const byTemplate = new Map<number, PathClass[]>();
      for (const pathClass of classes) {
        if (pathClass.isLoose) {
          looseOnes.push(pathClass);
          continue;
        }
        inTree.add(pathClass);
        for (const id of pathClass.templates) {
          const known = byTemplate.get(id);
          if (known === undefined) byTemplate.set(id, [pathClass]);
          else known.push(pathClass);
        }
      }
      const whole = [...byTemplate].filter(([id, { length }]) => length === sizes[id]);
      whole.sort(([a, one], [b, other]) => other.length - one.length || (ranks[b] ?? 0) - (ranks[a] ?? 0));
      const left = new Set(inTree);
      const covered = [...coverLoose(looseOnes)];
      for (const [id, members] of whole) {
        const [pathClass] = members.filter(each => left.has(each));
        if (pathClass === undefined) continue;
        covered.push({ path: templates[id] ?? '', except: [], pathClass });
        for (const each of members) left.delete(each);
      }
      for (const pathClass of left) {
        if (!left.has(pathClass)) continue;
        const { length } = pathClass.segments;
        const own = templateOf(length, pathClass);
        const below = reach(pathClass, true, inTree, maxExceptions);
        const isSubtree = below !== undefined && below.inside.length > below.except.length;
        const reached = isSubtree ? below : reach(pathClass, pathClass.hasTail, inTree, Infinity);
        const path = isSubtree && !pathClass.hasTail ? `${own}/*` : own;
        covered.push({ path, except: reached?.except ?? [], pathClass });
        for (const each of reached?.inside ?? [pathClass]) left.delete(each);
        left.delete(pathClass);
      }
      return withoutCovered(covered);
    },
  };

  /** The classes that the template of a class covers; undefined where it covers paths that no template matches, or has too many exceptions. */
  function reach(pathClass: PathClass, isSubtree: boolean, wanted: ReadonlySet<PathClass>, max: number) {
    const inside: PathClass[] = [];
    const except: string[] = [];
    const { segments, hasTail } = pathClass;

    const visit = (node: ClassNode, depth: number): boolean => {
      const own = node.pathClass;
      if (depth < segments.length && own?.hasTail !== true) {
        const segment = segments[depth];
        if (segment?.kind === 'literal') {
          const next = node.literals.get(segment.text) ?? node.other;
          return next === undefined || visit(next, depth + 1);
        }
        return childrenOf(node).every(child => visit(child, depth + 1));
      }
      if (own === undefined) return false;
      if (isSubtree && !own.hasTail) {
        if (isApart(node)) {
          except.push(`${templateOf(own.segments.length, own)}/*`);
          return except.length <= max;
        }
        if (node.other?.pathClass === undefined) return false;
      }
      if (wanted.has(own)) inside.push(own);
      else except.push(templateOf(own.segments.length, own));
      if (except.length > max) return false;
      return !isSubtree || own.hasTail || childrenOf(node).every(child => visit(child, depth + 1));
    };
    /** Whether nothing here or below is wanted. */
    const isApart = (node: ClassNode): boolean =>
      (node.pathClass === undefined || !wanted.has(node.pathClass)) && childrenOf(node).every(isApart);

    if (!visit(root, 0) && (isSubtree || hasTail)) return undefined;
    const excepted = except.map(toPaths);
    return {
      inside: inside.filter(each => !excepted.some(paths => coversTemplate(paths, asPaths(each)))),
      except,
    };
  }
}

/** Several spellings of one literal are one row; a path and all that is under it too. */
function coverLoose(classes: readonly PathClass[]): readonly Covered[] {
  const found = new Map<string, Covered>();
  for (const pathClass of classes) {
    const own = templateOf(pathClass.segments.length, pathClass);
    const upper = own.replace(/\/:[^/]+\/\*$/, '');
    const path = upper !== own && found.has(upper) ? `${upper}/*` : own;
    if (!found.has(path)) found.set(path, { path, except: [], pathClass });
    if (path !== own) found.delete(upper);
  }
  return withoutCovered([...found.values()]);
}

/** Without those that another one covers whole. */
function withoutCovered(all: readonly Covered[]): readonly Covered[] {
  const wide = all.flatMap(each => {
    if (each.except.length === 0 && !each.pathClass.isLoose) return [];
    return [{ each, template: toPaths(each.path), except: each.except.map(toPaths) }];
  });
  return all.filter(each => {
    if (each.except.length > 0) return true;
    const own = toPaths(each.path);
    return !wide.some(
      ({ each: other, template, except }) =>
        other !== each &&
        other.pathClass.isLoose === each.pathClass.isLoose &&
        coversTemplate(template, own) &&
        !except.some(paths => overlapsTemplate(paths, own)),
    );
  });
}

type Paths = Parameters<typeof coversTemplate>[0];

/** Whatever the parameter of the account is called. */
function toPaths(template: string): Paths {
  const subtree = template.endsWith('/*');
  const texts = template.slice(1, subtree ? -'/*'.length : undefined).split('/');
  const segments = texts.map(text =>
    text.startsWith(':') ? { kind: 'any' as const, name: '' } : { kind: 'literal' as const, value: text },
  );
  return { segments, subtree };
}

function asPaths({ segments, hasTail }: PathClass): Paths {
  const own = segments.map(segment =>
    segment.kind === 'literal' ? { kind: segment.kind, value: segment.text } : { kind: 'any' as const, name: '' },
  );
  return { segments: own, subtree: hasTail };
}

function childrenOf({ literals, other }: ClassNode): readonly ClassNode[] {
  return other?.pathClass === undefined ? [...literals.values()] : [...literals.values(), other];
}

/** As a route would be written; of a loose segment, its literal. */
function templateOf(length: number, { segments, hasTail }: PathClass): string {
  const texts = segments.slice(0, length).map(segment => {
    if (segment.kind === 'other') return `:${segment.name}`;
    return segment.kind === 'literal' ? segment.text : segment.literal;
  });
  return `/${texts.join('/')}${hasTail ? '/*' : ''}`;
}
