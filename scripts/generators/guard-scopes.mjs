// Writes docs/guard-scopes.md: the members of each format by the names that scopes of guards use.
import { clientFormats } from '../../src/engines/messages/formats/index.ts'
import { modelPlaces } from '../../src/engines/messages/mask/places.ts'
import { mcpMembers } from '../../src/gateway/backends/mcp/proxy/calls/guarded-places.ts'

const introduction = `<!-- Generated from src/engines/messages/formats and src/gateway/backends/mcp by npm run generate. -->

# What scopes of guards read

A guard with a \`scope\` reads only the members of these rows ([Guards](ai.md#guards)). \`name[a=b]\` is a list of objects in which the member \`a\` is \`b\`, and \`name{a=b}\` is such an object. These are the usual members: a member that is not listed has the scope of what contains it. A document in the result of a tool is part of \`ToolOutput\`. Other formats than these have \`Messages\` and, for reranks, \`Documents\`.
`

export function generate() {
  const formats = Object.values(clientFormats).filter(
    ({ name, operation }) => operation === 'chat' && !sameAsOthers.has(name),
  )
  const sections = [...formats.map(section), mcpSection()]
  return { 'docs/guard-scopes.md': `${introduction}\n${sections.join('\n')}` }
}

/** Formats with the members of another one. */
const sameAsOthers = new Set(['InvokeModel', 'TextCompletions'])
const alsoIn = {
  Messages: ' `InvokeModel` has the same members.',
  Completions: ' `TextCompletions` has `prompt` and `choices[].text` as `Messages`.',
}

function section({ name, places: { request, response } }) {
  const rows = modelPlaces.map(
    (place) => `| \`${place}\` | ${cell(request[place])} | ${cell(response[place])} |`,
  )
  const head = ['| scope | requests | responses |', '|---|---|---|']
  return `## ${name}\n\nThe format \`${name}\`.${alsoIn[name] ?? ''}\n\n${[...head, ...rows].join('\n')}\n`
}

function mcpSection() {
  const rows = Object.entries(mcpMembers).map(
    ([place, { request, response }]) => `| \`${place}\` | ${cell(request)} | ${cell(response)} |`,
  )
  const head = ['| scope | messages of clients | messages of servers |', '|---|---|---|']
  return `## MCP\n\nGuards in \`backend.mcp.promptGuard\` ([mcp.md](mcp.md#calls)). Members are named by method. A guard reads \`Definitions\` only if its scope names it.\n\n${[...head, ...rows].join('\n')}\n`
}

const cell = (paths = []) => paths.map((path) => `\`${path}\``).join('<br>')
