/** Requests of servers to clients, and the client capabilities that they need. */

import { isObject } from '../../../../ground/base/json-object.ts'
import { member, textOf } from '../json/node.ts'
import type { McpRequest } from '../message.ts'

/** The requests that servers may send, and the client capability that each needs. */
const needs = new Map<string, string>([
  ['sampling/createMessage', 'sampling'],
  ['elicitation/create', 'elicitation'],
  ['roots/list', 'roots'],
  ['tasks/get', 'tasks'],
  ['tasks/result', 'tasks'],
  ['tasks/list', 'tasks'],
  ['tasks/cancel', 'tasks'],
])

/** Whether the protocol defines the method as a request. */
export const isServerRequest = (method: string): boolean => method === 'ping' || needs.has(method)

/** Returns the client's capabilities. `initializeParams` is JSON of its `initialize` params. */
export function capabilitiesIn(initializeParams: string): unknown {
  const params: unknown = JSON.parse(initializeParams)
  return isObject(params) ? params.capabilities : undefined
}

/** Whether the client declares the capability that the request needs. */
export function declares({ method, text, params }: McpRequest, capabilities: unknown): boolean {
  const name = needs.get(method)
  // Every client responds to a ping. Methods that the protocol does not define are passed on.
  if (name === undefined) return true
  const capability = isObject(capabilities) ? capabilities[name] : undefined
  if (!isObject(capability)) return false
  if (name !== 'elicitation') return true
  const mode = textOf(text, member(params, 'mode')) ?? 'form'
  // An empty `elicitation` capability allows forms, the older mode.
  return isObject(capability[mode]) || (mode === 'form' && capability.url === undefined)
}
