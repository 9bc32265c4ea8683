/** The manual page sluice(1) in the macros of man(7), made from the definition of the command line. */
import { type DescribedCommand, type DescribedOption, descendants } from './command-tree.ts'

/** Writes the page for a version. It has no date, so that the same version always gives the same page. */
export function manualPage(program: DescribedCommand, version: string): string {
  return [
    `.TH SLUICE 1 "" "sluice ${escapeText(version)}" "User Commands"`,
    '.SH NAME',
    'sluice \\- gateway for AI, MCP and HTTP traffic',
    '.SH SYNOPSIS',
    '.B sluice',
    '.I COMMAND',
    '[\\fIOPTIONS\\fR]',
    '.SH DESCRIPTION',
    escapeText(program.description),
    '.SH COMMANDS',
    ...descendants(program).flatMap(commandLines),
    '.SH EXIT STATUS',
    ...exitStatuses.flatMap(([code, meaning]) => ['.TP', `.B ${code}`, escapeText(meaning)]),
    '.SH ENVIRONMENT',
    'The help text of each setting names its environment variable.',
    'An option on the command line takes precedence.',
  ].join('\n')
}

const exitStatuses = [
  ['0', 'The command succeeded.'],
  ['1', 'The command worked, and its answer is negative, such as an invalid object.'],
  ['2', 'The usage was wrong, or an input could not be read.'],
  ['3', 'Something is undecided (simulate, what-if).'],
  ['70', 'A bug. Please report it with the printed stack.'],
] as const

function commandLines({ path, args, description, options }: DescribedCommand): string[] {
  return [
    `.SS ${escapeText(['sluice', path, args].filter((part) => part !== '').join(' '))}`,
    escapeText(description),
    ...options.flatMap(optionLines),
  ]
}

function optionLines({ flags, value, choices, description }: DescribedOption): string[] {
  const names = flags.map((flag) => `\\fB${escapeText(flag)}\\fR`).join(', ')
  const shown = choices.length > 0 ? choices.join('|') : value
  return [
    '.TP',
    shown === undefined ? names : `${names} \\fI${escapeText(shown)}\\fR`,
    escapeText(description),
  ]
}

/** Protects what roff would interpret: backslashes, hyphens, and a control character that begins a line. */
const escapeText = (text: string): string =>
  text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^[.']/, '\\&$&')
