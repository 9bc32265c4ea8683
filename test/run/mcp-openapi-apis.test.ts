/** Ten APIs behind one MCP endpoint: each server gets exactly the request that its document describes. */
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { configMap } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { publicApis } from '../support/public-apis.ts'

const received: object[] = []
const api = useListening(
  createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method, url, headers } = request
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      response.setHeader('content-type', 'application/json')
      // A link to elsewhere can change nothing but arguments.
      response.setHeader('link', [
        '<http://127.0.0.1/feed?cursor=c0>; rel="prev"',
        '<http://169.254.169.254/feed?cursor=c2&admin=1>; rel="next"',
      ])
      response.end('{"items":[]}')
    })
  }),
)
const port = await freePort()
useGateway(() => ({
  manifests: {
    // No manifest by its name; the ConfigMap of this API takes the document from here.
    'feed.txt': JSON.stringify(publicApis.feed?.document),
    'all.yaml': mcpManifests(
      port,
      {
        apis: {
          targets: Object.entries(publicApis).map(([name, { references = {} }]) => ({
            name,
            static: {
              host: '127.0.0.1',
              port: api.port,
              openapi: {
                configMap: { name },
                ...(Object.keys(references).length > 0 && {
                  references: Object.keys(references).map((ref) => ({
                    ref,
                    configMap: { name, key: ref },
                  })),
                }),
              },
            },
          })),
        },
      },
      Object.entries(publicApis).map(([name, { document, references = {} }]) => {
        const all = { 'openapi.yaml': document, ...references }
        const data = Object.entries(all).map(([key, one]) => [key, JSON.stringify(one)])
        return configMap(
          name,
          name === 'feed' ? { 'openapi.yaml': `\${file:feed.txt}` } : Object.fromEntries(data),
        )
      }),
    ),
  },
}))
const client = useFixture(() => connectClient(port, '/apis'))

const calls = Object.entries(publicApis).flatMap(([name, one]) =>
  one.calls.map((call) => ({ name: `${name}_${call.tool}`, call })),
)

describe('APIs in the manner of public ones [OpenAPITarget.references]', () => {
  it.each(calls)('$name gets what its document says', async ({ name, call }) => {
    const { tool: _, args, ...expected } = call
    const result = await client.callTool({ name, arguments: { ...args } })
    expect(result.isError).toBeUndefined()
    expect(received.at(-1)).toMatchObject(expected)
  })

  it('tells the model how to get the next page, if the tool has the parameter', async () => {
    const result = (await client.callTool({ name: 'feed_feed', arguments: {} })) as {
      content: { text: string }[]
    }
    expect(result.content[1]?.text).toMatch(/more results.*in query: \{"cursor":"c2"\}\]$/)
    const other = (await client.callTool({ name: 'orders_orders', arguments: {} })) as {
      content: unknown[]
    }
    expect(other.content).toHaveLength(1)
  })
})
