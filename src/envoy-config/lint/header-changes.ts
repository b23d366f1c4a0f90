// Finds additions and removals of owned request headers in lists of routes, mirror policies and filters.
import type { OwnedNames } from './owned-names.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Finding, when } from './rule.ts';

// The lists of routes and of rate limits (`request_headers_to_add_when_not_enforced`), and lists of mutations.
const listName = /^request_(?:headers_to_(?:add|remove)\w*|(?:headers_|trailers_)?mutations)$/;

/** By the lists at any depth of a filter's settings, or of another message. */
export function ownedChangesInside(settings: ProtoValue, names: OwnedNames): readonly Finding[] {
  return settings.inner(name => listName.test(name)).flatMap(list => ownedChanges(list, names));
}

/** By a list of HeaderValueOption, of HeaderMutation or of names to remove. What a HeaderMutation removes is left out. */
export function ownedChanges(list: ProtoValue, names: OwnedNames): readonly Finding[] {
  return list.items().flatMap(item => {
    const change = item.names().length === 0 ? 'remove' : 'add';
    const at = change === 'remove' ? item : addedName(item);
    const meaning = names.meaningOf(at.text() ?? '', change);
    return when(meaning !== undefined, at, `${change}s ${meaning}`);
  });
}

function addedName(item: ProtoValue): ProtoValue {
  const appended = item.field('append');
  return (appended.isPresent ? appended : item).field('header', 'key');
}
