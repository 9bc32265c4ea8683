// Third-party code and data that artifacts contain: the texts of their licences, which many licences require in
// copies, and what the SBOM says about them.
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** The name of the file with the notices, in every artifact. */
export const noticesFile = 'THIRD-PARTY-NOTICES.txt'

/**
 * Something of others that an artifact contains.
 * @typedef {{ name: string, version: string, license: string, purl: string, text: string }} Part
 */

const readText = (name) => readFileSync(join(import.meta.dirname, 'notices', name), 'utf8')

/** Texts of packages that have no file with their licence. */
const missingTexts = { '@bufbuild/protobuf': 'bufbuild-protobuf.txt' }

const inLicense =
  'Licensed under the Apache License, Version 2.0, whose text is in the file LICENSE.\n'

/** The texts that a package asks to keep. The Apache License itself is in every artifact. */
function textOf(folder, { name, license }) {
  const own = missingTexts[name]
  if (own !== undefined) return readText(own)
  const files = readdirSync(join(root, folder)).filter((file) =>
    (license === 'Apache-2.0' ? /^notice/i : /^(licen[cs]e|notice|copying)/i).test(file),
  )
  const texts = files.sort().map((file) => readFileSync(join(root, folder, file), 'utf8'))
  if (license === 'Apache-2.0') return [inLicense, ...texts].join('\n')
  if (texts.length > 0) return texts.join('\n')
  throw new Error(`${name} has no file with its licence: add one to scripts/notices`)
}

/** @returns {Part} */
function packagePart(folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const { name, version, license } = manifest
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { name, version, license, purl, text: textOf(folder, manifest) }
}

/** Folders of the packages whose code is in the outputs of bundles, by the metafiles of esbuild. */
export function bundledFolders(metafiles) {
  const inputs = metafiles
    .flatMap(({ outputs }) => Object.values(outputs))
    .flatMap((output) => Object.entries(output.inputs))
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
  const folders = inputs.flatMap(([path]) => {
    const [folder] = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    return folder === undefined ? [] : [folder]
  })
  return [...new Set(folders)]
}

/** Names of the packages that the outputs of bundles import when they run. */
export function importedNames(metafiles) {
  const imports = metafiles
    .flatMap(({ outputs }) => Object.values(outputs))
    .flatMap((output) => output.imports)
    .filter(({ external, path }) => external && !isBuiltin(path))
  return [...new Set(imports.map(({ path }) => path.match(/^(@[^/]+\/)?[^/]+/)[0]))].sort()
}

/** The packages of these folders of node_modules. */
export const packageParts = (folders) => folders.map(packagePart)

/** Parts of the WebAssembly modules, and the vocabularies that are delivered with them. */
export function coreParts() {
  const { devDependencies: locked } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const vocabularies = ['o200k_base', 'cl100k_base'].map((name) => ({
    name: `${name} vocabulary of tiktoken`,
    version: locked.tiktoken,
    license: 'MIT',
    purl: `pkg:generic/${name}@${locked.tiktoken}`,
    text: readText('tiktoken.txt'),
  }))
  const unicode = {
    name: 'Unicode Character Database',
    version: '17.0.0',
    license: 'Unicode-3.0',
    purl: 'pkg:generic/unicode-character-database@17.0.0',
    text: readText('unicode.txt'),
  }
  return [packagePart('node_modules/assemblyscript'), ...vocabularies, unicode]
}

/** The contents of the file with the notices. Parts with the same text are listed together. */
export function noticesOf(parts) {
  const byText = Map.groupBy(
    parts.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ({ text }) => text,
  )
  const sections = [...byText].map(([text, sharing]) => {
    const heads = sharing.map(
      ({ name, version, license, purl }) =>
        `${name} ${version}\nLicense: ${license}\nPackage: ${purl}\n`,
    )
    return `${'-'.repeat(80)}\n${heads.join('\n')}\n${text.trim()}\n`
  })
  return `This product contains software and data of others, under the licences below.\n\n${sections.join('\n')}`
}

/** A part as a component of an SBOM (CycloneDX). */
export const componentOf = ({ name, version, license, purl }) => ({
  name,
  version,
  purl,
  licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }],
})
