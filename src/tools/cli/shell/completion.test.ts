/** Completion as the shells compute it, and the manual page as its formatter reads it. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Argument, Command, Option } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeCommand } from './command-tree.ts'
import { completionScript, type Shell } from './completion.ts'
import { manualPage } from './manual.ts'

const program = new Command('sluice').description("A program, and what it's for.")
program
  .command('check')
  .description("check files: it's quick; nothing is changed")
  .addOption(new Option('-o, --output <format>', 'output [format]').choices(['text', 'json']))
  .option('-f, --file <path>', 'file to check; may be repeated')
  .option('--name <text>', 'name of the check')
  .option('--strict', 'exit with 1 if a warning is printed')
  .addOption(new Option('--internal').hideHelp())
program.command('idp').command('prepare').option('--realm <name>', '.realm \\ of tokens')
program.command('completion').addArgument(new Argument('<shell>'))
const tree = describeCommand(program)

const folder = mkdtempSync(join(tmpdir(), 'sluice-completion-'))
beforeAll(() => {
  writeFileSync(join(folder, 'a file.yaml'), '')
  for (const shell of ['bash', 'zsh', 'fish'] satisfies Shell[])
    writeFileSync(join(folder, shell), completionScript(tree, shell))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What bash suggests for the last of these words. */
function suggestions(...words: string[]): string[] {
  const script = `source ./bash; COMP_WORDS=(sluice "$@"); COMP_CWORD=$#
    compopt() { :; }
    _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`
  const output = execFileSync('bash', ['-c', script, 'bash', ...words], {
    cwd: folder,
    encoding: 'utf8',
  })
  return output.split('\n').filter((line) => line !== '')
}

describe('completion in bash', () => {
  it.each([
    { words: ['c'], suggested: ['check', 'completion'] },
    { words: ['check', '--'], suggested: ['--output', '--file', '--name', '--strict', '--help'] },
    { words: ['check', '--output', ''], suggested: ['text', 'json'] },
    { words: ['check', '--strict', '-o', 'j'], suggested: ['json'] },
    { words: ['check', '--file', 'a'], suggested: ['a file.yaml'] },
    { words: ['check', '--name', ''], suggested: [] },
    { words: ['idp', ''], suggested: ['prepare', '-h', '--help'] },
    { words: ['idp', 'prepare', '--r'], suggested: ['--realm'] },
    { words: ['idp', 'prepare', 'check', '--r'], suggested: ['--realm'] },
  ])('suggests $suggested after $words', ({ words, suggested }) => {
    expect(suggestions(...words)).toEqual(suggested)
  })
})

const isInstalled = (name: string) => spawnSync(name, ['--version']).status === 0

describe.each(['zsh', 'fish'])('completion in %s', (shell) => {
  it.skipIf(!isInstalled(shell))('is a script that the shell accepts', () => {
    const { status, stderr } = spawnSync(shell, ['-n', join(folder, shell)], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})

describe('completion in fish', () => {
  it.skipIf(!isInstalled('fish'))('suggests the commands, options and choices', () => {
    const complete = (line: string) =>
      execFileSync('fish', ['-c', `source ./fish; complete -C '${line}'`], {
        cwd: folder,
        encoding: 'utf8',
      })
        .split('\n')
        .flatMap((text) => (text === '' ? [] : [text.split('\t')[0]]))
    expect(complete('sluice ch')).toEqual(['check'])
    expect(complete('sluice check --s')).toEqual(['--strict'])
    expect(complete('sluice check -o ').sort()).toEqual(['json', 'text'])
    expect(complete('sluice idp ')).toEqual(['prepare'])
  })
})

describe('the manual page', () => {
  const page = manualPage(tree, '1.2.3-rc.1')

  it('has every command and option, but no hidden one', () => {
    expect(page).toContain('.TH SLUICE 1 "" "sluice 1.2.3\\-rc.1" "User Commands"')
    expect(page).toContain('.SS sluice idp prepare')
    expect(page).toContain('\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItext|json\\fR')
    expect(page).toContain('\\&.realm \\e of tokens')
    expect(page).not.toContain('internal')
  })

  it.skipIf(!isInstalled('groff'))('is accepted by groff without a warning', () => {
    const { status, stderr } = spawnSync('groff', ['-man', '-ww', '-z', '-'], {
      input: page,
      encoding: 'utf8',
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})
