/** Ten APIs behind one MCP endpoint: each server gets exactly the request that its document describes. */
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { configMap } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { type PublicApi, publicApis } from '../support/public-apis.ts'

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
/** Pages of lists, by the last part of the path. Each format names the next page in another way. */
const pages: Readonly<Record<string, (at: number) => object>> = {
  cursor: (at) => ({ items: [at], next_cursor: at < 3 ? at + 1 : null }),
  declared: (at) => ({ items: [at], more: { from: at + 1 } }),
  url: (at) => ({ results: [at], next: `http://169.254.169.254/url?page=${at + 1}&admin=1` }),
  broken: (at) => (at === 1 ? { items: [at], next_cursor: 2 } : { error: 'no list' }),
  loop: (at) => ({ items: [at], next_cursor: 1 }),
  large: (at) => ({ items: ['x'.repeat(400)], next_cursor: at + 1 }),
}
const asked: string[] = []
const lists = useListening(
  createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://api')
    const name = pathname.slice(1)
    asked.push(url)
    const at = Number(searchParams.get(name === 'url' ? 'page' : 'cursor') ?? 1)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(pages[name]?.(at)))
  }),
)
const cursor = { name: 'cursor', in: 'query', schema: {} }
const paged = {
  openapi: '3.1.0',
  info: { title: 'Lists', version: '1' },
  paths: Object.fromEntries(
    Object.keys(pages).map((name) => {
      const links = {
        Next: { operationId: name, parameters: { cursor: '$response.body#/more/from' } },
      }
      const parameters = [cursor, { name: 'page', in: 'query', schema: {} }]
      const responses = { 200: { description: 'ok', ...(name === 'declared' && { links }) } }
      return [`/${name}`, { get: { operationId: name, parameters, responses } }]
    }),
  ),
}
const port = await freePort()
useGateway(() => ({
  manifests: {
    // No manifest by its name; the ConfigMap of this API takes the document from here.
    'feed.txt': JSON.stringify(publicApis.feed?.document),
    'all.yaml': mcpManifests(
      port,
      {
        paged: {
          targets: [
            {
              name: 'paged',
              static: {
                host: '127.0.0.1',
                port: lists.port,
                openapi: { configMap: { name: 'paged' }, maxPages: 3, maxResultSize: 1_024 },
              },
            },
          ],
        },
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
      Object.entries({ ...publicApis, paged: { document: paged } }).map(([name, one]) => {
        const { document, references = {} }: Pick<PublicApi, 'document' | 'references'> = one
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

describe('pages [OpenAPITarget.maxPages]', () => {
  const client = useFixture(() => connectClient(port, '/paged'))
  const result = async (name: string, args: Record<string, unknown> = {}) => {
    asked.length = 0
    const { content, structuredContent } = await client.callTool({ name, arguments: args })
    const [, hint] = content as { text: string }[]
    return { structured: structuredContent, hint: hint?.text, requests: [...asked] }
  }
  const hint = (count: number, next: object) =>
    expect.stringMatching(
      new RegExp(`^\\[These are ${count} pages .*in query: ${JSON.stringify(next)}\\]$`),
    )

  it('are joined up to the end of the list, the number of pages and the size of the result', async () => {
    expect(await result('cursor')).toEqual({
      structured: { items: [1, 2, 3], next_cursor: null },
      hint: undefined,
      requests: ['/cursor', '/cursor?cursor=2', '/cursor?cursor=3'],
    })
    expect(await result('declared', { query: { cursor: 4 } })).toMatchObject({
      structured: { items: [4, 5, 6] },
      hint: hint(3, { cursor: 7 }),
    })
    expect(await result('url')).toMatchObject({
      structured: { results: [1, 2, 3] },
      hint: hint(3, { page: '4' }),
      requests: ['/url', '/url?page=2', '/url?page=3'],
    })
    expect(await result('large')).toMatchObject({ hint: hint(2, { cursor: 3 }) })
  })

  it('end if the API repeats a page or returns something else, which the model can request again', async () => {
    const looped = await result('loop', { query: { cursor: 9 } })
    expect(looped).toMatchObject({ structured: { items: [9, 1] }, hint: undefined })
    expect(looped.requests).toHaveLength(2)
    expect(await result('broken')).toMatchObject({
      structured: { items: [1] },
      hint: '[There are more results. For the next page, call this tool again with the same arguments, but these in query: {"cursor":2}]',
    })
  })
})
