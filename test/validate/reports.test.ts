/** Reports of `sluice validate` for other tools, read by parsers of their formats. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWithParts } from '../support/parts.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'sluice')
const folder = mkdtempSync(join(tmpdir(), 'sluice-reports-'))

const route = (name: string, parent: string, more = '') => `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name} }
spec:
  parentRefs: [{ name: ${parent} }]
${more}`

beforeAll(() => {
  mkdirSync(join(folder, 'manifests, 1'))
  writeFileSync(join(folder, 'manifests, 1', 'a&b.yaml'), route('missing', 'nowhere'))
  writeFileSync(join(folder, 'wrong.yaml'), route('wrong', 'nowhere', '  rulez: []\n'))
  writeFileSync(join(folder, 'syntax.yaml'), 'a: [\n')
})
afterAll(() => rmSync(folder, { recursive: true }))

function validate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(launcher, ['validate', ...args], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const files = ['manifests, 1', 'wrong.yaml']

describe('sluice validate --format sarif', () => {
  it('places each problem in a file of the repository', () => {
    const { status, stdout } = validate(...files, '--format', 'sarif')
    expect(status).toBe(1)
    const { version, runs } = JSON.parse(stdout)
    expect(version).toBe('2.1.0')
    const [{ tool, results }] = runs
    const rules = tool.driver.rules.map(({ id }: { id: string }) => id)
    expect(rules.sort()).toEqual(['invalid', 'unresolved'])
    const [error, warning] = results
    expect(error).toMatchObject({ ruleId: 'invalid', level: 'error' })
    expect(error.message.text).toMatch(/^HTTPRoute default\/wrong: spec\.rulez: /)
    expect(error.locations[0]).toEqual({
      physicalLocation: {
        artifactLocation: { uri: 'wrong.yaml' },
        region: { startLine: 7, startColumn: 3 },
      },
      logicalLocations: [{ fullyQualifiedName: 'HTTPRoute default/wrong', kind: 'resource' }],
    })
    expect(warning).toMatchObject({ ruleId: 'unresolved', level: 'warning' })
    const { artifactLocation } = warning.locations[0].physicalLocation
    expect(artifactLocation.uri).toBe('manifests%2C%201/a%26b.yaml')
  })

  it('has no results for valid manifests', () => {
    writeFileSync(join(folder, 'empty.yaml'), '')
    const { status, stdout, stderr } = validate('empty.yaml', '--format', 'sarif')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(JSON.parse(stdout).runs[0].results).toEqual([])
  })
})

describe('sluice validate --format github', () => {
  it('prints an annotation for each problem, with escaped properties', () => {
    const { stdout } = validate(...files, '--format', 'github')
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(
      /^::error file=wrong\.yaml,line=7,col=3,title=HTTPRoute default\/wrong::HTTPRoute default\/wrong: spec\.rulez: /,
    )
    expect(lines[1]).toMatch(/^::warning file=manifests%2C 1\/a&b\.yaml,line=6,/)
  })

  it('annotates a file that cannot be parsed, and exits with 2', () => {
    const { status, stdout } = validate('syntax.yaml', '--format', 'github')
    expect(status).toBe(2)
    expect(stdout).toMatch(/^::error file=syntax\.yaml,line=\d+,col=\d+::/)
  })
})

describeWithParts(['python3'], 'sluice validate --format junit', () => {
  it('has a suite for each file and a failure for each invalid object', () => {
    const { status, stdout } = validate(...files, '--format', 'junit')
    expect(status).toBe(1)
    const program = `
import json, sys, xml.etree.ElementTree as tree
root = tree.fromstring(sys.stdin.buffer.read())
print(json.dumps([[suite.get('name'), [[case.get('name'), [child.tag for child in case]] for case in suite]] for suite in root]))`
    const parsed = execFileSync('python3', ['-c', program], { input: stdout, encoding: 'utf8' })
    expect(Object.fromEntries(JSON.parse(parsed))).toEqual({
      'manifests, 1/a&b.yaml': [['HTTPRoute default/missing', ['system-out']]],
      'wrong.yaml': [['HTTPRoute default/wrong', ['failure']]],
    })
  })
})

describe('sluice validate', () => {
  it('accepts files without -f, as tools pass them', () => {
    expect(validate(...files)).toMatchObject({ status: 1 })
    expect(validate('empty.yaml', '-f', 'manifests, 1')).toMatchObject({ status: 0 })
  })

  it.each([
    { args: [], message: 'name the manifests to check' },
    {
      args: ['wrong.yaml', '--format', 'xml'],
      message: 'Allowed choices are sarif, github, junit.',
    },
    { args: ['wrong.yaml', '--format', 'sarif', '-o', 'json'], message: 'cannot be used with' },
  ])('rejects the arguments $args with exit code 2', ({ args, message }) => {
    const { status, stderr } = validate(...args)
    expect(status).toBe(2)
    expect(stderr).toContain(message)
  })
})
