// Finds the texts in an event of a streamed answer of Chat Completions.
import { failure } from './bytes'
import { textOf } from './content'
import { maskError } from './forms'
import { AUDIO, CHOICES, CONTENT, DELTA, ERROR, FINISH_REASON, INDEX, REFUSAL, TEXT, TRANSCRIPT } from './names'
import { complete, indexOf, needOnce, nonEmpty, takePiece } from './stream'
import { isKind, KIND_ARRAY, KIND_NULL, KIND_OBJECT, member, memberOf, node } from './tape'

export function readCompletions(root: i32): void {
  const choices = memberOf(root, CHOICES, KIND_ARRAY)
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    if (!isKind(choice, KIND_OBJECT)) continue
    needOnce(choice)
    maskError(choice)
    const index = indexOf(choice, INDEX)
    const text = nonEmpty(choice, TEXT)
    if (text != 0) takePiece(text, index, TEXT, TEXT)
    const delta = memberOf(choice, DELTA, KIND_OBJECT)
    if (delta != 0) readDelta(delta, index)
  }
  const error = member(root, ERROR)
  if (error != 0 && !isKind(error, KIND_NULL)) return complete(-1)
  for (let choice = choices == 0 ? 0 : node(choices).child; choice != 0 && failure == 0; choice = node(choice).next) {
    const reason = member(choice, FINISH_REASON)
    if (reason != 0 && !isKind(reason, KIND_NULL)) complete(indexOf(choice, INDEX))
  }
}

function readDelta(delta: i32, index: i32): void {
  needOnce(delta)
  const content = nonEmpty(delta, CONTENT)
  if (content != 0) takePiece(content, index, CONTENT, CONTENT)
  const refusal = nonEmpty(delta, REFUSAL)
  if (refusal != 0) takePiece(refusal, index, REFUSAL, REFUSAL)
  const transcript = nonEmpty(memberOf(delta, AUDIO, KIND_OBJECT), TRANSCRIPT)
  if (transcript != 0) takePiece(transcript, index, TRANSCRIPT, TRANSCRIPT)
  const parts = memberOf(delta, CONTENT, KIND_ARRAY)
  for (let part = parts == 0 ? 0 : node(parts).child; part != 0; part = node(part).next) {
    const text = textOf(part)
    if (text != 0 && node(text).end - node(text).start > 2) takePiece(text, index, CONTENT, CONTENT)
  }
}
