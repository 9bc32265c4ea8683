/** Readers of JSON, MCP answers, gRPC messages and manifests. */

import { parseManifest } from '../../src/control/watch/manifest.ts'
import { JsonScanner } from '../../src/engines/json/scanner.ts'
import { ResponseReader } from '../../src/gateway/backends/mcp/proxy/target/response-reader.ts'
import { frameMessage, MessageReader } from '../../src/gateway/proxy/callouts/grpc-framing.ts'
import { FieldPairs } from '../../src/ground/exchange/memory-message.ts'
import { filled, ignore, type Reader } from './reader.ts'

/** One event of an MCP server with a large message, up to its JSON. */
export function mcpReaders(): Reader[] {
  return [
    {
      id: 'mcp.one-event',
      size: 8 * 1024 * 1024,
      bytes: (size) =>
        Buffer.from(`data: {"jsonrpc":"2.0","id":1,"result":{"a":"${'x'.repeat(size)}"}}\n\n`),
      start() {
        const reader = new ResponseReader({
          onEnd: ignore,
          onFailure(failure) {
            throw failure
          },
        })
        reader.onHead(200, new FieldPairs([['content-type', 'text/event-stream']]))
        return (piece) => reader.onBytes(piece)
      },
    },
  ]
}

export function textReaders(): Reader[] {
  const scanner = new JsonScanner({ names: 'unique' })
  const json = (id: string, text: (size: number) => string): Reader => ({
    id: `json.${id}`,
    size: 256 * 1024,
    isWhole: true,
    bytes: (size) => Buffer.from(text(size)),
    start: () => (piece) => void scanner.scanText(piece.toString()),
  })
  const keys = (size: number) =>
    Array.from({ length: size / 12 }, (_, at) => `"key${at}":1`).join(',')
  return [
    json('one-string', (size) => `"${'\\n'.repeat(size / 2)}"`),
    json('keys', (size) => `{${keys(size)}}`),
    json('numbers', (size) => `[${'1,'.repeat(size / 2)}1]`),
    json('space', (size) => `${' '.repeat(size)}1`),
    ...(['one', 'many'] as const).map(
      (id): Reader => ({
        id: `grpc.${id}`,
        size: 512 * 1024,
        bytes: (size) =>
          id === 'one'
            ? frameMessage(filled('x', size))
            : filled(frameMessage(filled('x', 3)), size),
        start() {
          const reader = new MessageReader()
          return (piece) => {
            if (typeof reader.read(piece) === 'string') throw new Error('a message is refused')
          }
        },
      }),
    ),
    {
      id: 'manifest.documents',
      size: 32 * 1024,
      isWhole: true,
      bytes: (size) =>
        filled('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n---\n', size),
      start: () => (piece) => void parseManifest(piece, 'a.yaml'),
    },
  ]
}
