// What each error code of the YAML library means, in sentences that do not repeat the text of the file as the library's own do.
import type { ErrorCode } from 'yaml';

export const yamlSyntaxProblems: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias must not have an anchor or a tag',
  BAD_ALIAS: 'an alias or anchor is broken: put text that starts with * or & in quotes',
  BAD_COLLECTION_TYPE: 'a tag does not fit its value: remove the tag',
  BAD_DIRECTIVE: 'a directive is unknown or broken: put text that starts with % in quotes',
  BAD_DQ_ESCAPE: 'an escape sequence is unknown: write \\ in double quotes twice',
  BAD_INDENT: 'the indentation does not match a line above, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag must be directly before its value',
  BAD_SCALAR_START: 'text that starts with a character such as @ or ` must be in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key must be on a line of its own: put text that contains ": " in quotes',
  BLOCK_IN_FLOW: 'an indented list or mapping must not be inside brackets',
  DUPLICATE_KEY: 'a key is set twice: remove one',
  IMPOSSIBLE: 'the file must be YAML',
  KEY_OVER_1024_CHARS: 'a key must not be longer than 1024 characters',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line and end in a colon',
  MULTIPLE_ANCHORS: 'a value must not have two anchors',
  MULTIPLE_DOCS: 'the file must be one YAML document: remove the line "---" between documents',
  MULTIPLE_TAGS: 'a value must not have two tags',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file must not be nested so deep',
  TAB_AS_INDENT: 'a tab must not be used for indentation',
  TAG_RESOLVE_FAILED: 'a tag is unknown or does not fit its value: put text that starts with ! in quotes',
  UNEXPECTED_TOKEN: 'unexpected text: YAML allows nothing at this place',
};
