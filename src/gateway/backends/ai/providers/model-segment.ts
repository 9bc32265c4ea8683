import { LlmError } from '../../../../engines/messages/llm-error.ts'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const unsafe = /[\s\\?#\u0000-\u001f\u007f]|(^|\/)\.\.?(\/|$)/

/** Encodes a model as one path segment. `:` is not escaped, so that ARNs and versions stay readable. */
export function modelSegment(model: string): string {
  if (model === '' || unsafe.test(model)) {
    throw new LlmError(400, `model ${JSON.stringify(model)} cannot be part of a path`)
  }
  return model.replace(/[%/]/g, (character) => encodeURIComponent(character))
}
