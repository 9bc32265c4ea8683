/** What a provider gets as text has passed the guards, whatever a request consists of. */
import assert from 'node:assert/strict'
import type { ProviderFormat } from '../../src/engines/messages/chat.ts'
import { type ChatFormat, clientFormats } from '../../src/engines/messages/client-formats.ts'
import type { JsonObject } from '../../src/engines/messages/json/json.ts'
import { LlmError } from '../../src/engines/messages/llm-error.ts'
import { needPlainKeys } from '../../src/engines/messages/mask/plain-keys.ts'
import { mapRequestTexts } from '../../src/engines/messages/mask/texts.ts'
import { translate } from '../../src/engines/messages/provider-formats.ts'
import { checkClientShape } from '../../src/engines/messages/request/client-shapes.ts'
import { textsOf } from './hidden-texts.ts'

export const clients = ['Completions', 'Messages', 'Responses'] as const
export const providers = ['completions', 'messages', 'converse', 'generate-content'] as const

const secret = /SECRET\d+/g

/** Masks the parts of a text, also a secret that two parts share. */
function mask(texts: readonly string[]): readonly string[] {
  const masked = texts.map((text) => text.replaceAll(secret, '[]'))
  return masked.join('').search(secret) < 0 ? masked : masked.map((_, at) => (at === 0 ? '[]' : ''))
}

/** Returns the request to a provider; undefined if the gateway refuses it. */
function translated(
  body: JsonObject,
  client: ChatFormat,
  provider: ProviderFormat,
): JsonObject | undefined {
  try {
    needPlainKeys(body)
    const guarded = mapRequestTexts(body, mask)
    checkClientShape(guarded, client)
    const chat = clientFormats[client].readRequest(guarded)
    let next = 0
    return translate(chat, provider, { newId: () => String(next++) }).body
  } catch (error) {
    if (error instanceof LlmError) return undefined
    throw error
  }
}

/** Returns how many providers get the request. @throws AssertionError if a provider gets a secret as text. */
export function checkTranslations(body: JsonObject, client: ChatFormat): number {
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
