import { mcpLists } from '../../../ground/model/mcp-lists.ts'

/** Values of the enum fields of MCP targets in proto/resource.proto. */
export const mcpShapes = {
  'Backend.Mcp': { absentIfEmpty: ['pins'] },
  'Backend.Target': {
    absentIfEmpty: ['secrets'],
    words: { protocol: ['StreamableHTTP', 'SSE'], pinning: ['Warn', 'Block'] },
  },
  'Backend.Pins': { words: { list: mcpLists } },
} as const
