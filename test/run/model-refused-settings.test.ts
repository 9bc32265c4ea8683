/** What goes wrong between client, gateway and vendor, and what is refused before anything is served. */
import { beforeAll, describe, expect, it } from 'vitest'
import { sluice } from '../support/gateway.ts'
import { aiBackend, manifest } from '../support/manifests.ts'
import { completes } from '../support/vendors/vendor-a.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  a,
  aliases,
  anthropic,
  ask,
  askC,
  at,
  c,
  fields,
  openai,
  patterns,
  running,
} from './model-errors-rig.ts'

describe('settings for models', () => {
  it('[limit.prompt-guards] [limit.defaults-and-overrides] work up to their maximum number', async () => {
    a.answer = completes('word0 word7 word8')
    const answer = await openai('full').chat.completions.create({
      model: 'alias-63',
      messages: [{ role: 'user', content: 'word0 word7 word8' }],
    })
    expect(answer.choices[0]?.message.content).toBe('<masked> <masked> word8')
    expect(a.calls.at(-1)?.body).toMatchObject({
      model: 'm-63',
      user: 'gateway',
      x_0: 0,
      x_63: 63,
      messages: [{ content: '<masked> <masked> word8' }],
    })
  })

  it('[AIPromptEnrichment.systemField] set the system field of a vendor that has no such role', async () => {
    await anthropic('system').messages.create(askC)
    expect(c.calls.at(-1)?.body.system).toBe('Be brief.')
    await anthropic('system').messages.create({ ...askC, system: 'Be long.' })
    expect(c.calls.at(-1)?.body.system).toBe('Be long.')
  })
})

describe('objects that break a rule', () => {
  const guard = (direction: string, ...items: object[]) => ({ promptGuard: { [direction]: items } })
  const regex = { builtins: ['Email'] }
  const webhook = { backendRef: { name: 'hook', port: 80 } }
  const broken: Readonly<Record<string, object>> = {
    'empty-ai': {},
    'empty-guard': { promptGuard: {} },
    'no-guards': { promptGuard: { request: [] } },
    'nine-guards': guard('request', ...patterns(9)),
    'nine-answers': guard('response', ...patterns(9)),
    'request-none': guard('request', {}),
    'request-two': guard('request', { regex, webhook }),
    'request-three': guard('request', { webhook, vendorAModeration: {} }),
    'response-none': guard('response', {}),
    'response-two': guard('response', { regex, webhook }),
    'response-moderation': guard('response', { vendorAModeration: {} }),
    'empty-response': guard('request', { regex, response: {} }),
    'low-status': guard('request', { regex, response: { statusCode: 199 } }),
    'unknown-builtin': guard('request', { regex: { builtins: ['Passport'] } }),
    'unknown-action': guard('request', { regex: { ...regex, action: 'Drop' } }),
    'many-defaults': { defaults: fields(65) },
    'no-defaults': { defaults: [] },
    'many-overrides': { overrides: fields(65) },
    'many-aliases': { modelAliases: aliases(65) },
  }
  /** The same of whole backends. */
  const one = { vendorA: {} }
  const named = (name: string, more: object = {}) => ({ name, vendorA: {}, ...more })
  const brokenBackends: Readonly<Record<string, Record<string, unknown>>> = {
    'neither-way': {},
    'both-ways': { provider: one, groups: [{ providers: [named('a')] }] },
    'no-vendor': { provider: { host: 'example.com' } },
    'two-vendors': { provider: { vendorA: {}, vendorC: {} } },
    'named-none': { groups: [{ providers: [{ name: 'a' }] }] },
    'named-two': { groups: [{ providers: [named('a', { vendorC: {} })] }] },
    'same-names': { groups: [{ providers: [named('a')] }, { providers: [named('a')] }] },
    'empty-policies': { groups: [{ providers: [named('a', { policies: {} })] }] },
  }
  const messages = new Map<string, string>()

  beforeAll(async () => {
    running.write(
      'broken.yaml',
      manifest(
        ...Object.entries(broken).map(([name, ai]) =>
          aiBackend(name, { provider: { vendorA: {}, ...at(a) } }, { ai }),
        ),
        ...Object.entries(brokenBackends).map(([name, ai]) => aiBackend(name, ai)),
      ),
    )
    await waitFor('the refusals', async () => {
      const { stdout } = await sluice('status', '--log-file', running.logFile, '-o', 'json')
      const { objects } = JSON.parse(stdout) as {
        objects: { name: string; status: { conditions?: { status: string; message: string }[] } }[]
      }
      for (const { name, status } of objects) {
        const refused = status.conditions?.find((one) => one.status === 'False')
        if (refused !== undefined) messages.set(name, refused.message)
      }
      const all = [...Object.keys(broken), ...Object.keys(brokenBackends)]
      return all.every((name) => messages.has(name))
    })
  })

  it.each([
    ['[AIBackend.exactlyOneOf] neither a provider nor groups', 'neither-way', /spec\.ai/],
    ['[AIBackend.exactlyOneOf] a provider and groups', 'both-ways', /spec\.ai/],
    ['[LLMProvider.exactlyOneOf] a provider without a vendor', 'no-vendor', /spec\.ai\.provider/],
    ['[LLMProvider.exactlyOneOf] a provider with two vendors', 'two-vendors', /spec\.ai\.provider/],
    [
      '[NamedLLMProvider.exactlyOneOf] a named provider without a vendor',
      'named-none',
      /providers\[0\]/,
    ],
    [
      '[NamedLLMProvider.exactlyOneOf] a named provider with two vendors',
      'named-two',
      /providers\[0\]/,
    ],
    ['[AIBackend.groups.uniqueNames] a name in two groups', 'same-names', /ai\.groups: .*unique/],
    ['[BackendWithAI.atLeastOneOf] empty policies', 'empty-policies', /providers\[0\]\.policies/],
    ['[BackendAI.atLeastOneOf] an empty object', 'empty-ai', /spec\.policies\.ai/],
    [
      '[AIPromptGuard.atLeastOneOf] guards for neither requests nor answers',
      'empty-guard',
      /ai\.promptGuard/,
    ],
    ['[limit.prompt-guards] no guard', 'no-guards', /promptGuard\.request/],
    ['[limit.prompt-guards] nine guards', 'nine-guards', /promptGuard\.request/],
    ['[limit.prompt-guards] nine guards for answers', 'nine-answers', /promptGuard\.response/],
    ['[PromptguardRequest.exactlyOneOf] a guard without a type', 'request-none', /request\[0\]/],
    ['[PromptguardRequest.exactlyOneOf] a guard with two types', 'request-two', /request\[0\]/],
    [
      '[PromptguardRequest.exactlyOneOf] a guard with two other types',
      'request-three',
      /request\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] a guard for answers without a type',
      'response-none',
      /response\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] a guard for answers with two types',
      'response-two',
      /response\[0\]/,
    ],
    [
      '[PromptguardResponse.exactlyOneOf] moderation for answers',
      'response-moderation',
      /vendorAModeration/,
    ],
    [
      '[CustomResponse.atLeastOneOf] an empty custom response',
      'empty-response',
      /request\[0\]\.response/,
    ],
    ['[CustomResponse.statusCode] an invalid status code', 'low-status', /statusCode/],
    ['[Regex.builtins] an unknown builtin', 'unknown-builtin', /builtins\[0\]/],
    ['[Regex.action] an unknown action', 'unknown-action', /action/],
    ['[limit.defaults-and-overrides] too many defaults', 'many-defaults', /ai\.defaults/],
    ['[limit.defaults-and-overrides] an empty list of defaults', 'no-defaults', /ai\.defaults/],
    ['[limit.defaults-and-overrides] too many overrides', 'many-overrides', /ai\.overrides/],
    ['[limit.defaults-and-overrides] too many aliases', 'many-aliases', /ai\.modelAliases/],
  ])('refuses %s, and names the field', (_id, name, path) => {
    expect(messages.get(name)).toMatch(path)
  })

  it('do not affect other objects', async () => {
    const answer = await openai('a').chat.completions.create(ask)
    expect(answer.choices[0]?.message.content).toBe('Hello from A')
  })
})
