/**
 * Makes the C library: the modules of dist/ as C that wasm2c generates, with a header for the ABI:
 *
 *     node scripts/packages/c.mjs FOLDER && tar -xzf FOLDER/sluice-c-VERSION.tar.gz
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { coreParts, noticesFile, noticesOf, packageParts } from '../notices.mjs'
import { gzip, tarOf } from '../release/tar.mjs'
import { encodings, modules, readVocabulary, root, runScript, writeFiles } from './common.mjs'

const source = join(root, 'packages', 'c')
const abi = JSON.parse(readFileSync(join(root, 'assembly', 'core.abi.json'), 'utf8'))
const types = { i32: 'int32_t', f64: 'double', address: 'uint32_t', void: 'void' }
const read = (name) => readFileSync(join(source, name), 'utf8')

/** Functions of both modules, with the modules that have them. */
function functions() {
  const inTexts = new Set(abi.texts.exports)
  return [
    ...abi.exports.map((each) => ({ ...each, core: true, texts: inTexts.has(each.name) })),
    ...abi.texts.described.map((each) => ({ ...each, core: false, texts: true })),
  ]
}

function prototypeOf({ name, parameters, result }) {
  const list = parameters.map((each) => `, ${types[each.type]} ${each.name}`).join('')
  return `${types[result]} sluice_${name}(sluice *core${list})`
}

function headerOf() {
  const comment = (text) => text.replaceAll('*/', '* /')
  const constants = abi.constants.map(
    ({ name, value, meaning }) =>
      `  /* ${comment(meaning ?? name)} */\n  SLUICE_${name} = ${value},`,
  )
  const declared = functions().map(
    (each) => `/* ${comment(each.meaning)} */\n${prototypeOf(each)};\n`,
  )
  return read('sluice.h')
    .replace('@CONSTANTS@', constants.join('\n'))
    .replace('@FUNCTIONS@', declared.join('\n'))
}

/** Calls the function in the module of the instance. */
function definitionOf(each) {
  const { name, parameters, result } = each
  const call = (module) => {
    if (!each[module]) return undefined
    const list = parameters.map((parameter) => `, ${cast(parameter)}`).join('')
    const called = `w2c_${module}_${name}(&core->${module}${list})`
    return result === 'void' ? called : `result = (${types[result]})${called}`
  }
  const lines = ['texts', 'core'].flatMap((module) => {
    const text = call(module)
    const constant = `SLUICE_${module.toUpperCase()}`
    return text === undefined ? [] : [`  if (core->module == ${constant}) GUARDED(core, ${text});`]
  })
  const failed = { i32: 'SLUICE_TRAPPED', address: '0', f64: '0' }[result]
  // After a longjmp, only a volatile variable is sure to have its value.
  const [first, last] =
    failed === undefined
      ? [[], []]
      : [[`  ${types[result]} volatile result = ${failed};`], [`  return result;`]]
  return `\n${[`${prototypeOf(each)} {`, ...first, ...lines, ...last, '}'].join('\n')}\n`
}

const cast = ({ name, type }) => (type === 'i32' ? `(uint32_t)${name}` : name)

/** What wasm2c generates, as names and texts. Of its vector instructions, sluice-runtime.h has those that are used. */
function generate(module) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-c-'))
  try {
    const name = module === 'core.wasm' ? 'core' : 'texts'
    const wasm2c = join(root, 'node_modules', '.bin', 'wasm2c')
    const file = `sluice-${name}.c`
    const args = ['-n', name, '-o', join(folder, file), join(root, 'dist', module)]
    const { status, stderr } = spawnSync(wasm2c, args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`wasm2c: ${stderr}`)
    return [file, `sluice-${name}.h`].map((each) => ({
      name: each,
      text: readFileSync(join(folder, each), 'utf8')
        .replaceAll('#include "wasm-rt.h"', '#include "sluice-runtime.h"')
        .replaceAll('#include <simde/wasm/simd128.h>\n', '')
        .replace(/^DEFINE_SIMD_(?:LOAD_FUNC|LOAD_LANE|STORE_LANE)\((?!v128_load,).*\n/gm, ''),
    }))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param {{ version: string }} release */
export async function packC({ version }) {
  const folder = `sluice-c-${version}`
  const fileOf = (name, body) => ({
    name: `${folder}/${name}`,
    type: 'file',
    mode: 0o644,
    body: Buffer.from(body),
  })
  const entries = [
    fileOf('sluice.h', headerOf()),
    fileOf('sluice.c', read('sluice.c') + functions().map(definitionOf).join('')),
    fileOf('sluice-runtime.h', read('sluice-runtime.h')),
    fileOf('README.md', read('README.md').replaceAll('sluice-c-0.1.0', folder)),
    ...modules.flatMap(generate).map(({ name, text }) => fileOf(name, text)),
    fileOf('LICENSE', readFileSync(join(root, 'LICENSE'))),
    // wasm2c writes parts of itself into what it generates.
    fileOf(noticesFile, noticesOf([...coreParts(), ...packageParts(['node_modules/wabt'])])),
    ...encodings.map((name) => fileOf(`${name}.tokens`, readVocabulary(name))),
  ]
  return { name: `c/${folder}.tar.gz`, bytes: await gzip(await tarOf(entries)) }
}

await runScript(import.meta.filename, async (folder, version) => {
  const { name, bytes } = await packC({ version })
  writeFiles(folder, [{ name: basename(name), bytes }])
})
