/** The two tools that clients see if they search for tools. */
import type { McpToolSearch } from '../../../../ground/model/mcp-targets.ts'
import { member, textOf } from '../json/node.ts'
import type { McpRequest } from '../message.ts'

const searchTool = 'search_tools'
export const callTool = 'call_tool'

export const isSearch = (method: string, tool: string | undefined): boolean =>
  tool === searchTool && method === 'tools/call'

/** Returns the name of the tool that a call of `call_tool` names; undefined for other messages. */
export function calledByName({
  text,
  method,
  params,
}: Pick<McpRequest, 'text' | 'method' | 'params'>): string | undefined {
  if (method !== 'tools/call' || textOf(text, member(params, 'name')) !== callTool) return undefined
  return textOf(text, member(member(params, 'arguments'), 'name'))
}

/** Returns the definitions of the tools, as JSON. */
export function searchDefinitions({ limit }: McpToolSearch): readonly string[] {
  return [
    {
      name: searchTool,
      title: 'Search tools',
      description: `Finds tools by what they do. Most tools of this server are not in the list of tools: search before you say that there is no tool for a task. Returns the names, descriptions and input schemas of at most ${limit} tools, the best first. Then call one with ${callTool}.`,
      inputSchema: {
        type: 'object',
        properties: {
          query: {
            type: 'string',
            description: 'What the tool should do, in a few words, such as: create invoice',
          },
          limit: { type: 'integer', minimum: 1, maximum: limit, default: limit },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    {
      name: callTool,
      title: 'Call tool',
      description: `Calls a tool that ${searchTool} has found. Arguments must match its input schema.`,
      inputSchema: {
        type: 'object',
        properties: {
          name: { type: 'string', description: `Name of the tool, as ${searchTool} returns it.` },
          arguments: { type: 'object', description: 'Arguments of the tool.' },
        },
        required: ['name'],
      },
    },
  ].map((one) => JSON.stringify(one))
}
