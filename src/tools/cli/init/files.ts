/** The files that `sluice init` writes: manifests with comments, one file for each subject. */
import { masksOn, modelsOf } from '../ai/manifests.ts'
import { ollama, vendors } from '../ai/vendors.ts'
import { writeYaml } from '../import/write-yaml.ts'
import { backendOf, gatewayOn, keyObjects, policyOn, routeTo, staticOf } from '../local/gateway.ts'
import type { Answers } from './answers.ts'

const gateway = 'edge'
const schema =
  '# yaml-language-server: $schema=https://raw.githubusercontent.com/sluice-dev/sluice/main/docs/schema/manifest.json\n'

interface Part {
  readonly file: string
  readonly comment: string
  readonly objects: readonly object[]
}

/** Returns the content of each file by its name. */
export function filesOf(answers: Answers, keyHash: string | undefined): Map<string, string> {
  const parts = [gatewayPart(answers.port), ...upstreamParts(answers)]
  if (keyHash !== undefined) parts.push(keyPart(keyHash))
  if (answers.limit > 0) parts.push(limitPart(answers.limit, keyHash !== undefined))
  return new Map(
    parts.map(({ file, comment, objects }) => {
      const lines = comment.split('\n').map((line) => `# ${line}\n`)
      return [file, `${schema}${lines.join('')}${objects.map(writeYaml).join('---\n')}`]
    }),
  )
}

const gatewayPart = (port: number): Part => ({
  file: 'gateway.yaml',
  comment: 'The ports that the gateway listens on. Add a listener for each port, also with TLS.',
  objects: [gatewayOn(gateway, port)],
})

function upstreamParts({ serve, upstream }: Answers): Part[] {
  if (serve === 'ai') return modelParts(upstream)
  const url = new URL(upstream)
  if (serve === 'mcp') {
    const targets = [{ name: 'server', static: { ...staticOf(url), path: url.pathname } }]
    return [
      {
        file: 'mcp.yaml',
        comment:
          'The MCP servers, which clients see as one at /mcp. Add a target for each server.\nWith several targets, tools have the name of their target in front.',
        objects: [routeTo(gateway, 'tools', '/mcp'), backendOf('tools', { mcp: { targets } })],
      },
    ]
  }
  return [
    {
      file: 'app.yaml',
      comment:
        'Which requests go where. Add hostnames to the route, and a rule for each path.\nThe backend is the address of the upstream.',
      objects: [routeTo(gateway, 'app', '/'), backendOf('app', { static: staticOf(url) })],
    },
  ]
}

function modelParts(name: string): Part[] {
  const vendor = vendors.find((one) => one.name === name) ?? ollama
  const [variable] = vendor.variables
  const baseUrl = vendor === ollama ? 'http://127.0.0.1:11434' : undefined
  return [
    {
      file: 'models.yaml',
      comment: `The models of ${name}, by patterns of their names.${
        variable === undefined
          ? ''
          : `\nThe key comes from the environment of the gateway; \${file:PATH} reads one from a file.`
      }`,
      objects: modelsOf({ vendor, variable, baseUrl }, gateway),
    },
    {
      file: 'masks.yaml',
      comment:
        'Masks personal data in prompts and in answers. Delete this file to pass all texts on.',
      objects: [masksOn(gateway)],
    },
  ]
}

const keyPart = (keyHash: string): Part => ({
  file: 'keys.yaml',
  comment:
    'The keys of clients, by their hashes, and the policy that asks for one.\nsluice keys create NAME --file keys.yaml adds one.',
  objects: keyObjects(gateway, keyHash),
})

const limitPart = (requests: number, hasKeys: boolean): Part => ({
  file: 'limits.yaml',
  comment: `How many requests each ${hasKeys ? 'key' : 'address'} may send in a minute.`,
  objects: [
    policyOn(gateway, 'limits', {
      traffic: {
        rateLimit: {
          local: [{ requests, unit: 'Minutes', key: hasKeys ? 'apiKey.id' : 'source.address' }],
        },
      },
    }),
  ],
})
