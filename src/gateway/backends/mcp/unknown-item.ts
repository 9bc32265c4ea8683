/** Recognizes responses of servers that do not have an item, so that refused items look like unknown ones. */

import { jsonValue, member, textOf } from './json/node.ts'
import type { McpResponse } from './message.ts'
import { codes } from './responses.ts'

/** Codes with which servers say that an item is unknown; -32002 is that of resources up to 2025-11-25. */
const unknownCodes: readonly unknown[] = [codes.invalidParams, -32002]
const phrases = /not found|unknown|no such|does not exist|doesn't exist/i

/** Does the server say that it has no item with this name? Some servers say so in the result of the call. */
export function saysUnknown({ text, result, error }: McpResponse, name: string): boolean {
  if (error !== undefined) {
    const code = member(error, 'code')
    const isCode = code !== undefined && unknownCodes.includes(jsonValue(text, code))
    return isCode && isAboutItem(textOf(text, member(error, 'message')), name)
  }
  const isError = member(result, 'isError')
  if (isError === undefined || !text.startsWith('true', isError.start)) return false
  const [only, ...more] = member(result, 'content')?.values ?? []
  return more.length === 0 && isAboutItem(textOf(text, member(only, 'text')), name)
}

const isAboutItem = (message: string | undefined, name: string): boolean =>
  message?.includes(name) === true && phrases.test(message)
