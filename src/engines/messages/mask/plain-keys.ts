/**
 * Rejects requests in which a provider could read other texts than guards: some servers accept `Type` for
 * `type`, and some requests nest texts in ways that guards do not read.
 */

import { isObject, type JsonObject } from '../json/json.ts'
import { asciiName, otherCase } from '../json/names.ts'
import { LlmError } from '../llm-error.ts'
import { encodedText, isReadable } from './encoded-texts.ts'
import { keepTexts } from './repeated-texts.ts'
import {
  contentFields,
  isSetting,
  isSkipped,
  type OwnTexts,
  requestScopeOf,
  ruleOf,
  scopeOf,
  type TextScope,
} from './text-fields.ts'
import { isMessageField } from './texts.ts'

/** Fields by which guards decide what they read, in any object. */
export const guardedFields = new Set(
  [
    'content output outputs results title context stdout stderr logs role refusal type text source data',
    'variables transcript media_type file_data filename custom input messages system instructions prompt',
    'prediction name arguments thinking',
  ].flatMap((line) => line.split(' ')),
)
const maxDepth = 100

/** @throws LlmError 400 if a text may be hidden from guards. */
export function needPlainKeys(body: JsonObject, own?: OwnTexts): void {
  const scope = requestScopeOf(own)
  for (const [name, value] of Object.entries(body)) {
    checkKey(name)
    if (isSetting(name, value)) continue
    const isMessages = isMessageField(name, own)
    const isContent = isMessages || contentFields.has(name)
    if (isMessages && Array.isArray(value)) {
      for (const message of value) {
        const inner = isObject(message) ? scopeOf(message, scope) : scope
        checkList([message], name, inner, 1, true)
      }
    } else checkField(body, undefined, name, { scope, depth: 0, isContent })
  }
}

interface Place {
  readonly scope: TextScope
  readonly depth: number
  /** The value is a content, in which lists contain no lists. */
  readonly isContent: boolean
}

function checkField(
  holder: JsonObject,
  key: string | undefined,
  name: string,
  { scope, depth, isContent }: Place,
): void {
  const value = holder[name]
  if (isSkipped(holder, key, name, scope)) return
  const rule = ruleOf(scope, name)
  if (typeof rule === 'function' && isObject(value)) rule(value, { map: keepTexts, scope })
  if (rule === 'data' || typeof rule === 'function') return
  if (typeof value === 'string') {
    const data = encodedText(holder, name, scope)
    if (typeof data !== 'object' || isReadable(data)) return
    throw new LlmError(400, `${name}: a text document must be UTF-8 in plain base64 to be guarded`)
  }
  if (Array.isArray(value)) checkList(value, name, scope, depth + 1, isContent)
  else if (isObject(value)) checkObject(value, name, scope, depth + 1)
}

function checkList(
  list: readonly unknown[],
  key: string,
  scope: TextScope,
  depth: number,
  isContent: boolean,
): void {
  checkDepth(depth)
  for (const item of list) {
    if (Array.isArray(item)) {
      if (isContent) throw new LlmError(400, 'lists inside lists cannot be guarded')
      checkList(item, key, scope, depth + 1, false)
    } else if (isObject(item)) checkObject(item, key, scope, depth)
  }
}

function checkObject(
  value: JsonObject,
  key: string | undefined,
  scope: TextScope,
  depth: number,
): void {
  checkDepth(depth)
  const isMap = key === 'variables'
  if (!isMap && typeof value.text === 'object' && value.text !== null) {
    throw new LlmError(400, 'text must be a string')
  }
  for (const name of Object.keys(value)) {
    if (!isMap) checkKey(name)
    checkField(value, key, name, { scope, depth, isContent: isMap || contentFields.has(name) })
  }
}

function checkDepth(depth: number): void {
  if (depth > maxDepth)
    throw new LlmError(400, `contents deeper than ${maxDepth} cannot be guarded`)
}

function checkKey(key: string): void {
  const plain = asciiName(key)
  if (plain !== key && guardedFields.has(plain)) {
    throw otherCase(key, plain)
  }
}
