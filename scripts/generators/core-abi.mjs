// What hosts of core.wasm need to know, from the AssemblyScript sources: assembly/core.abi.json for
// hosts of any language, src/engines/core/abi.ts for ours, and the constants of the Go module and of the Rust crate.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')
const constantSources = ['assembly/abi.ts', 'assembly/regex/codes.ts']
const textsSource = 'assembly/texts/abi.ts'
const constantLine = /^export const (\w+): [iu]32 = (-?\d+(?: << \d+)?)(?: \/\/ (.*))?$/
const exportPattern =
  /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?export function (\w+)\(([^)]*)\): (\w+)/g

const evaluate = (text) => {
  const [left, shift] = text.split(' << ').map(Number)
  return shift === undefined ? left : left << shift
}

const plain = (comment = '') =>
  comment
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim()

/** Constants with what their comment says, in order of appearance. */
function readConstants(file) {
  const constants = []
  let before = ''
  for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
    const [, name, value, after] = constantLine.exec(line) ?? []
    if (name) constants.push({ name, value: evaluate(value), meaning: after ?? before })
    before = /^\/\*\* (.*) \*\/$/.exec(line)?.[1] ?? ''
  }
  return constants
}

const typeOf = (text) => (text === 'usize' ? 'address' : text)

const readParameters = (text) =>
  text
    .split(',')
    .map((parameter) => parameter.trim())
    .filter((parameter) => parameter !== '')
    .map((parameter) => {
      const [name, type] = parameter.split(': ')
      return { name, type: typeOf(type) }
    })

/** The exported functions of a file and of the files that it re-exports whole. */
function readExports(file) {
  const text = readFileSync(join(root, file), 'utf8')
  const own = [...text.matchAll(exportPattern)].map(([, comment, name, parameters, result]) => ({
    name,
    parameters: readParameters(parameters),
    result: typeOf(result),
    meaning: plain(comment),
  }))
  const others = [...text.matchAll(/^export \* from '(.+)'$/gm)].flatMap(([, path]) =>
    readExports(`${join(dirname(file), path)}.ts`),
  )
  return [...own, ...others]
}

/** Codes of patterns and of lists of words, with the message that every host shows for them. */
const patternCodes = (constants) =>
  constants.filter(({ name, value }) => value < 0 && /^(REGEX|WORDS)_/.test(name))

function patternMessages(constants) {
  const rows = patternCodes(constants).map(
    ({ name, meaning }) => `  [abi.${name}, '${meaning}'],\n`,
  )
  return `// Generated from assembly/ by npm run generate; do not edit.
import * as abi from './abi.ts'

/** What is wrong with a pattern, by the code of the ABI. */
export const patternMessages: ReadonlyMap<number, string> = new Map<number, string>([
${rows.join('')}])
`
}

function typescript(constants) {
  const lines = constants.flatMap(({ name, value, meaning }) => [
    ...(meaning === '' ? [] : [`/** ${meaning} */`]),
    `export const ${name} = ${value}`,
  ])
  return `// Generated from assembly/ by npm run generate; do not edit.\n${lines.join('\n')}\n`
}

/** TEXTS_HAS_INPUT as TextsHasInput. */
const camelCase = (name) =>
  name.replace(/_?([A-Z0-9])([A-Z0-9]*)/g, (_, first, rest) => first + rest.toLowerCase())

/** The constants of the Go module, as gofmt writes them. */
function go(constants) {
  const width = Math.max(...constants.map(({ name }) => camelCase(name).length))
  const lines = constants.map(
    ({ name, value }) => `\t${camelCase(name).padEnd(width)} = ${value}\n`,
  )
  const codes = constants.filter(({ value }) => value < 0)
  const cases = codes.map(
    ({ name }) => `\tcase ${camelCase(name)}:\n\t\treturn ${JSON.stringify(name)}\n`,
  )
  const messages = patternCodes(constants).map(
    ({ name, meaning }) => `\tcase ${camelCase(name)}:\n\t\treturn ${JSON.stringify(meaning)}\n`,
  )
  return `// Code generated from assembly/ by npm run generate; DO NOT EDIT.

// Package abi has the constants of the WebAssembly modules.
package abi

const (
${lines.join('')})

// CodeName returns the name of an error code, or "".
func CodeName(code int32) string {
\tswitch code {
${cases.join('')}\t}
\treturn ""
}

// PatternMessage says what is wrong with a pattern. It returns "" for a code that is not about patterns.
func PatternMessage(code int32) string {
\tswitch code {
${messages.join('')}\t}
\treturn ""
}
`
}

/** The constants of the Rust crate, as rustfmt writes them. */
function rust(constants) {
  const lines = constants.map(({ name, value }) => `pub const ${name}: i32 = ${value};\n`)
  const codes = constants.filter(({ value }) => value < 0)
  const arms = codes.map(({ name }) => `        ${name} => "${name}",\n`)
  const messages = patternCodes(constants).map(({ name, meaning }) => rustArm(name, meaning))
  return `// Generated from assembly/ by npm run generate; do not edit.

//! Constants of the WebAssembly modules.
#![allow(dead_code)]

${lines.join('')}
/// The name of an error code.
pub fn code_name(code: i32) -> &'static str {
    match code {
${arms.join('')}        _ => "unknown code",
    }
}

/// What is wrong with a pattern, or \`None\` for the code of another error.
pub fn pattern_message(name: &str) -> Option<&'static str> {
    Some(match name {
${messages.join('')}        _ => return None,
    })
}
`
}

/** An arm for the name of a code, as rustfmt breaks lines of more than 100 characters. */
function rustArm(name, meaning) {
  const arm = `        "${name}" => "${meaning}",\n`
  if (arm.length <= 101) return arm
  return `        "${name}" => {\n            "${meaning}"\n        }\n`
}

/** @returns {Record<string, string>} */
export function generate() {
  const constants = constantSources.flatMap(readConstants)
  const textsConstants = readConstants(textsSource)
  const abi = {
    comment: 'Generated from assembly/ by npm run generate. An address is an unsigned 32-bit i32.',
    version: constants.find(({ name }) => name === 'ABI_VERSION').value,
    exports: readExports('assembly/index.ts'),
    // What it does not say of a function here is said above: the two are the same.
    rateShared: {
      module: 'core-rate-shared.wasm',
      imports: [{ module: 'env', name: 'memory', kind: 'memory', shared: true }],
      exports: readExports('assembly/rate-shared.ts').map(({ name }) => name),
    },
    // What it has in common with core.wasm is described above.
    texts: {
      module: 'core-texts.wasm',
      exports: readExports('assembly/texts.ts').map(({ name }) => name),
      described: readExports('assembly/texts/exports.ts'),
    },
    constants: [...constants, ...textsConstants],
  }
  return {
    'assembly/core.abi.json': `${JSON.stringify(abi, null, 2)}\n`,
    'packages/go/internal/abi/abi.go': go(abi.constants),
    'packages/rust/src/abi.rs': rust(abi.constants),
    'src/engines/core/abi.ts': typescript(constants),
    'src/engines/core/pattern-messages.ts': patternMessages(constants),
    'src/engines/core/abi-texts.ts': typescript(textsConstants),
  }
}
