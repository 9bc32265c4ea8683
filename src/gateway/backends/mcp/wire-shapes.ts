import { mcpLists } from '../../../ground/model/mcp-lists.ts'

/** Values of the enum fields of MCP targets in proto/resource.proto. */
export const mcpShapes = {
  'Backend.Mcp': {
    absentIfEmpty: ['pins', 'names', 'virtualServers'],
    words: { prefixMode: ['Conditional', 'Never'], failureMode: ['FailClosed'] },
  },
  'Backend.KnownNames': { words: { list: mcpLists } },
  'Backend.Target': {
    absentIfEmpty: ['endpoints', 'secrets'],
    words: { protocol: ['StreamableHTTP', 'SSE'], pinning: ['Warn', 'Block'] },
  },
  'Backend.Pins': { words: { list: mcpLists } },
} as const
