/** Calls a tool of an MCP server through the gateway, with a form made from the tool's schema. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SendPlace } from '../../models/send-places.ts'
import { McpClient, type McpExchange, type McpTool } from '../../source/mcp-client.ts'
import { served } from '../../state/served.ts'
import { Empty, Failure } from '../../ui/states.tsx'
import { argumentsOf, SchemaForm } from './schema-form.tsx'
import { authorization, Places, Raw } from './send-form.tsx'

export const CallTool = () => (
  <Places type="tools" none="No route leads to an MCP backend at this moment.">
    {(place) => <ToolCaller key={place.title} place={place} />}
  </Places>
)

function useTools(place: SendPlace) {
  const [tools, setTools] = useState<readonly McpTool[]>()
  const [exchange, setExchange] = useState<McpExchange>()
  const [result, setResult] = useState<Readonly<Record<string, unknown>>>()
  const [error, setError] = useState<string>()
  const client = useRef<McpClient>(undefined)
  const ending = useRef(new AbortController())
  useEffect(
    () => () => {
      ending.current.abort()
      client.current?.close()
    },
    [],
  )
  const run = async (work: () => Promise<void>) => {
    setError(undefined)
    setResult(undefined)
    await work().catch((thrown: Error) => setError(thrown.message))
  }
  const connect = () =>
    run(async () => {
      const server = served.value?.server
      if (server === undefined) return
      await client.current?.close()
      client.current = new McpClient(server, place, authorization(), setExchange)
      setTools(await client.current.tools(ending.current.signal))
    })
  const call = (name: string, args: object) =>
    run(async () => setResult(await client.current?.call(name, args, ending.current.signal)))
  return { tools, exchange, result, error, connect, call }
}

function ToolCaller({ place }: { place: SendPlace }) {
  const { tools, exchange, result, error, connect, call } = useTools(place)
  const [name, setName] = useState('')
  const tool = tools?.find((one) => one.name === name) ?? tools?.[0]
  return (
    <div class="pair">
      <section class="card" aria-labelledby="call">
        <h2 id="call">Call a tool</h2>
        <button type="button" onClick={connect}>
          {tools === undefined ? 'List the tools' : 'List the tools again'}
        </button>
        {error !== undefined && <Failure message={error} />}
        {tools?.length === 0 && <Empty>The gateway shows no tools to this client.</Empty>}
        {tools !== undefined && tool !== undefined && (
          <>
            <div class="wide">
              <label for="called-tool">Tool</label>
              <select
                id="called-tool"
                value={tool.name}
                onChange={({ currentTarget }) => setName(currentTarget.value)}
              >
                {tools.map((one) => (
                  <option key={one.name}>{one.name}</option>
                ))}
              </select>
            </div>
            <p class="quiet">{tool.description}</p>
            <ToolForm key={tool.name} tool={tool} onCall={(args) => call(tool.name, args)} />
          </>
        )}
        {result !== undefined && <Result result={result} />}
      </section>
      <Raw request={exchange?.request} response={exchange?.response} />
    </div>
  )
}

interface ToolFormProps {
  readonly tool: McpTool
  readonly onCall: (args: object) => void
}

function ToolForm({ tool: { inputSchema = {} }, onCall }: ToolFormProps) {
  const [problem, setProblem] = useState<string>()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        const read = argumentsOf(inputSchema, new FormData(event.currentTarget))
        setProblem(typeof read === 'string' ? read : undefined)
        if (typeof read !== 'string') onCall(read)
      }}
    >
      <SchemaForm schema={inputSchema} />
      {problem !== undefined && <Failure message={problem} />}
      <button type="submit">Call</button>
    </form>
  )
}

function Result({ result }: { result: Readonly<Record<string, unknown>> }) {
  const content = (result.content ?? []) as readonly { readonly text?: string }[]
  const texts = content.map(({ text, ...other }) => text ?? JSON.stringify(other))
  return (
    <div class={result.isError === true ? 'finding problem' : ''}>
      <h3>{result.isError === true ? 'The tool failed' : 'Result'}</h3>
      <output class="guarded">{texts.join('\n')}</output>
    </div>
  )
}
