/** What a provider gets as text has passed the guards, whatever a request consists of. */
import assert from 'node:assert/strict'
import { checkShape } from '../../src/engines/messages/common/shape.ts'
import type { ChatFormat } from '../../src/engines/messages/format.ts'
import {
  type ChatFormatName,
  clientFormats,
  type ProviderFormatName,
  providerFormats,
} from '../../src/engines/messages/formats/index.ts'
import type { JsonObject } from '../../src/engines/messages/json/json.ts'
import { LlmError } from '../../src/engines/messages/llm-error.ts'
import { needPlainKeys } from '../../src/engines/messages/mask/plain-keys.ts'
import { mapRequestTexts } from '../../src/engines/messages/mask/texts.ts'
import { translate } from '../../src/engines/messages/request/translation.ts'
import { textsOf } from './hidden-texts.ts'

export const clients = [
  'Completions',
  'Messages',
  'Responses',
  'GenerateContent',
  'Converse',
  'InvokeModel',
  'TextCompletions',
] as const
export const providers = [
  'completions',
  'responses',
  'messages',
  'converse',
  'generate-content',
] as const

const secret = /SECRET\d+/g

/** Masks the parts of a text, also a secret that two parts share. */
function mask(texts: readonly string[]): readonly string[] {
  const masked = texts.map((text) => text.replaceAll(secret, '[]'))
  return masked.join('').search(secret) < 0 ? masked : masked.map((_, at) => (at === 0 ? '[]' : ''))
}

/** Returns the request to a provider; undefined if the gateway refuses it. */
function translated(
  body: JsonObject,
  client: ChatFormatName,
  provider: ProviderFormatName,
): JsonObject | undefined {
  try {
    const format: ChatFormat = clientFormats[client]
    needPlainKeys(body, format.ownTexts)
    const guarded = mapRequestTexts(body, mask, format.ownTexts)
    checkShape(format.shape, guarded, '')
    const chat = format.readRequest(guarded)
    let next = 0
    return translate(chat, providerFormats[provider], { newId: () => String(next++) }).body
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}

/** Returns how many providers get the request. @throws AssertionError if a provider gets a secret as text. */
export function checkTranslations(body: JsonObject, client: ChatFormatName): number {
  let count = 0
  for (const provider of providers) {
    const sent = translated(body, client, provider)
    if (sent === undefined) continue
    count++
    for (const text of textsOf(sent, provider)) {
      assert.doesNotMatch(text, secret, `${client} to ${provider}: ${JSON.stringify(body)}`)
    }
  }
  return count
}
