// What each error code of the YAML library means, in sentences that do not repeat the text of the file as the library's own do.
import type { ErrorCode } from 'yaml';

export const yamlSyntaxProblems: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias must not have an anchor or a tag',
  BAD_ALIAS: 'an alias or an anchor is broken, text that starts with * or & must stand in quotes',
  BAD_COLLECTION_TYPE: 'a tag does not fit what it stands before',
  BAD_DIRECTIVE: 'a directive is unknown or broken, text that starts with % must stand in quotes',
  BAD_DQ_ESCAPE: 'an escape sequence is unknown, a \\ in double quotes must be written twice',
  BAD_INDENT: 'the indentation fits nothing above it, or a bracket is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag must stand directly before its value',
  BAD_SCALAR_START: 'text that starts with a character such as @ or ` must stand in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a key must stand on a line of its own, text with ": " in it must stand in quotes',
  BLOCK_IN_FLOW: 'an indented list or mapping must not stand inside brackets',
  DUPLICATE_KEY: 'a key is given twice',
  IMPOSSIBLE: 'this is not YAML',
  KEY_OVER_1024_CHARS: 'a key is longer than 1024 characters',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a space is missing',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line, with a colon after it',
  MULTIPLE_ANCHORS: 'a value must not have two anchors',
  MULTIPLE_DOCS: 'the file has more than one document',
  MULTIPLE_TAGS: 'a value must not have two tags',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file is nested too deep',
  TAB_AS_INDENT: 'a tab must not be used for indentation',
  TAG_RESOLVE_FAILED: 'a tag is unknown or does not fit its value, text that starts with ! must stand in quotes',
  UNEXPECTED_TOKEN: 'something stands where YAML has no place for it',
};
