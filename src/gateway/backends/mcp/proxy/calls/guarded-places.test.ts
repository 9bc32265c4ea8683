/** Every member in the table of places has a text that guards of its place read. */
import { expect, it } from 'vitest'
import type { McpPlace } from '../../../ai/policy/scope.ts'
import { type JsonNode, member, rootOf } from '../../json/node.ts'
import { readRequest, readResponse } from '../../message.ts'
import { listMethods } from '../../methods.ts'
import { mcpMembers } from './guarded-places.ts'
import {
  argumentTexts,
  definitionTexts,
  placeOfMethod,
  responseTexts,
  serverTexts,
  type TextGroup,
} from './guarded-texts.ts'

const canary = 'canary'
const step = /^(\w+)(?:\[(?:(\w+)=(\w+))?\])?$/

/** Builds the value at the rest of a path, such as `content[type=text].text`. */
function valueAt([first, ...rest]: readonly string[]): unknown {
  if (first === undefined) return canary
  const [, name = '', key, value] = step.exec(first) ?? []
  const inner = valueAt(rest)
  if (!first.includes('[')) return { [name]: inner }
  return { [name]: [key === undefined ? inner : { [key]: value, ...(inner as object) }] }
}

/** Returns what guards read in a message with the member. */
function readTexts(place: McpPlace, method: string, path: string, isRequest: boolean) {
  const message = JSON.stringify({
    ...{ jsonrpc: '2.0', id: 1, ...(path.startsWith('params') && { method }) },
    ...(valueAt(path.split('.')) as object),
  })
  if (path.startsWith('params')) {
    const request = readRequest(message)
    if (request === undefined) throw new Error(`no request: ${message}`)
    return isRequest ? argumentTexts(message, request.params) : serverTexts(request)
  }
  const response = readResponse(message)
  if (response === undefined) throw new Error(`no response: ${message}`)
  if (place !== 'Definitions') return responseTexts(response)
  const list = listMethods.find(({ name }) => name === method)
  const items: readonly JsonNode[] =
    list === undefined
      ? [member(rootOf(message), 'result') ?? rootOf(message)]
      : (member(response.result, list.member)?.values ?? [])
  return items.flatMap((item): readonly TextGroup[] => definitionTexts(message, item))
}

for (const [place, { request, response }] of Object.entries(mcpMembers)) {
  for (const [members, isRequest] of [
    [request, true],
    [response, false],
  ] as const) {
    for (const one of members) {
      it(`reads ${one} as ${place}`, () => {
        const [method = '', path = ''] = one.split(': ')
        const texts = readTexts(place as McpPlace, method, path, isRequest)
        expect(texts.flat().map(({ value }) => value)).toContain(canary)
        if (place === 'Resources' || place === 'Prompts') expect(placeOfMethod(method)).toBe(place)
      })
    }
  }
}
