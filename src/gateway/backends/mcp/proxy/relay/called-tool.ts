/** Calls of `call_tool`, which stand for calls of the tool that they name. */
import { member, membersOf, rawOf, replace } from '../../json/node.ts'
import { type McpRequest, readRequest } from '../../message.ts'
import { calledByName } from '../../tool-search/tools.ts'

/**
 * Returns the call of the tool that a call of `call_tool` names, so that rules, pinning, limits and records apply to
 * that tool. Returns other requests, and calls without a name, unchanged.
 */
export function calledTool(request: McpRequest): McpRequest {
  const { text, params } = request
  if (calledByName(request) === undefined) return request
  const asked = member(params, 'arguments')
  const name = member(asked, 'name')
  if (params === undefined || name === undefined) return request
  const args = member(asked, 'arguments')
  const own = [
    `"name":${rawOf(text, name)}`,
    ...(args === undefined ? [] : [`"arguments":${rawOf(text, args)}`]),
  ]
  const kept = membersOf(text, params, ['name', 'arguments'])
  return readRequest(replace(text, params, `{${[...own, ...kept].join(',')}}`)) ?? request
}
