// Text that an answer contains outside of its messages. Log probabilities repeat every token, so they are
// emptied. Citations quote their sources, so their texts are masked one by one.
import { failure } from './bytes'
import { addEdit, EDIT_EMPTY_LIST, EDIT_NULL, EDIT_REMOVE } from './edits'
import { maskOne } from './group'
import { countMatches } from './matches'
import {
  ANNOTATION, ANNOTATIONS, CHOICES, CITATION, CITATIONS, CONTENT, CONTENT_BLOCK, CONTEXT, DELTA, isNonText, ITEM, LOGPROBS, MESSAGE,
  OUTPUT, OUTPUT_TEXT, PART, RESPONSE, SEARCH_RESULTS, TOKEN_IDS,
} from './names'
import { isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, node, NODE_FOLDED, NODE_SCALARS, readName, textLength, textStart } from './tape'

function isContainer(name: i32): bool {
  return (
    name == CHOICES || name == CONTENT || name == CONTENT_BLOCK || name == DELTA || name == ITEM || name == MESSAGE ||
    name == OUTPUT || name == PART || name == RESPONSE
  )
}

function isCitation(name: i32): bool {
  return (
    name == ANNOTATION || name == ANNOTATIONS || name == CITATION || name == CITATIONS || name == CONTEXT || name == SEARCH_RESULTS
  )
}

/** Masks citations and empties log probabilities of an answer, or of an event of a streamed answer. */
export function maskRepeated(root: i32): void {
  countMatches(false)
  maskInside(root)
  countMatches(true)
}

function maskInside(value: i32): void {
  const isObject = isKind(value, KIND_OBJECT)
  if (!isObject && !isKind(value, KIND_ARRAY)) return
  for (let i = node(value).child; i != 0 && failure == 0; i = node(i).next) {
    if (isObject) maskMember(i)
    else maskInside(i)
  }
}

function maskMember(index: i32): void {
  const name = <i32>node(index).name
  if (name == 0 || node(index).flags & NODE_FOLDED) return
  if (name == OUTPUT_TEXT && isKind(index, KIND_STRING)) addEdit(index, EDIT_REMOVE)
  else if (name == LOGPROBS || name == TOKEN_IDS) emptyTokens(index)
  else if (isCitation(name)) {
    // A `context` that is a string belongs to a document and is masked with it.
    if (!isKind(index, KIND_STRING)) maskTexts(index)
  } else if (isContainer(name)) maskInside(index)
}

function emptyTokens(index: i32): void {
  if (isKind(index, KIND_OBJECT)) addEdit(index, EDIT_NULL)
  else if (isKind(index, KIND_ARRAY) && (node(index).child != 0 || node(index).flags & NODE_SCALARS)) addEdit(index, EDIT_EMPTY_LIST)
}

function maskTexts(value: i32): void {
  if (isKind(value, KIND_STRING)) return maskOne(value)
  const isObject = isKind(value, KIND_OBJECT)
  if (!isObject && !isKind(value, KIND_ARRAY)) return
  for (let i = node(value).child; i != 0 && failure == 0; i = node(i).next) {
    if (isObject && isKind(i, KIND_STRING)) {
      readName(i)
      if (isNonText(textStart, textLength)) continue
    }
    maskTexts(i)
  }
}
