/** Values of the enum fields of MCP targets in proto/resource.proto. */
export const mcpShapes = {
  'Backend.Target': { words: { protocol: ['StreamableHTTP', 'SSE'] } },
} as const
