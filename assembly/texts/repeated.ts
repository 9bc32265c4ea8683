// Text that an answer contains outside of its messages. Log probabilities repeat every token, so they are
// emptied. Citations quote their sources, so their texts are masked one by one.
import { failure } from './bytes'
import { addEdit, EDIT_EMPTY_LIST, EDIT_NULL, EDIT_REMOVE } from './edits'
import { maskOne } from './group'
import { countMatches } from './matches'
import { FIELD_CITATION, FIELD_UNREPEATED } from './fields'
import { flagsOf, isNonText, LOGPROBS, OUTPUT_TEXT, TOKEN_IDS } from './names'
import { isKind, KIND_ARRAY, KIND_OBJECT, KIND_STRING, node, NODE_FOLDED, NODE_SCALARS, readName, textLength, textStart } from './tape'

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
  const name = node(index).flags & NODE_FOLDED ? 0 : <i32>node(index).name
  if (name == OUTPUT_TEXT && isKind(index, KIND_STRING)) addEdit(index, EDIT_REMOVE)
  else if (name == LOGPROBS || name == TOKEN_IDS) emptyTokens(index)
  else if (flagsOf(name) & FIELD_CITATION) {
    // A `context` that is a string belongs to a document and is masked with it.
    if (!isKind(index, KIND_STRING)) maskTexts(index)
  } else if (!(flagsOf(name) & FIELD_UNREPEATED)) maskInside(index)
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
