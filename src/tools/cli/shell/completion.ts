/** Completion scripts for bash, zsh and fish, made from the definition of the command line. */
import { type DescribedCommand, type DescribedOption, descendants, isPath } from './command-tree.ts'

export type Shell = 'bash' | 'zsh' | 'fish'

/** Returns the completion script of a shell. */
export function completionScript(program: DescribedCommand, shell: Shell): string {
  return { bash, zsh, fish }[shell](program).join('\n')
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** The first sentence fits into a list of suggestions. */
const summary = (description: string): string => description.split(/[;(]|\. /)[0]?.trim() ?? ''

function bash(program: DescribedCommand): string[] {
  const all = [program, ...descendants(program)]
  const nested = descendants(program).map(({ path }) =>
    quote(path.includes(' ') ? path : ` ${path}`),
  )
  return [
    '# Completion of sluice for bash. Load it with: source <(sluice completion bash)',
    '_sluice() {',
    `  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}`,
    "  local command='' word words=''",
    `  for word in "\${COMP_WORDS[@]:1:COMP_CWORD - 1}"; do`,
    '    case "$command $word" in',
    `      ${nested.join(' | ')}) command="\${command:+$command }$word" ;;`,
    '    esac',
    '  done',
    '  case "$command:$previous" in',
    ...all.flatMap((command) => command.options.flatMap((option) => bashValues(command, option))),
    '  esac',
    '  case "$command" in',
    ...all.map(({ path, commands, options }) => {
      const words = [...commands.map(({ name }) => name), ...options.flatMap(({ flags }) => flags)]
      return `    ${quote(path)}) words=${quote(words.join(' '))} ;;`
    }),
    '  esac',
    '  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")',
    '}',
    'complete -F _sluice sluice',
  ]
}

/** The case of an option that takes a value: its choices, files, or nothing. */
function bashValues({ path }: DescribedCommand, option: DescribedOption): string[] {
  if (option.value === undefined) return []
  const pattern = option.flags.map((flag) => quote(`${path}:${flag}`)).join(' | ')
  const fill = (source: string) => `mapfile -t COMPREPLY < <(compgen ${source} -- "$current"); `
  const action = isPath(option)
    ? `compopt -o filenames; ${fill('-f')}`
    : option.choices.length > 0
      ? fill(`-W ${quote(option.choices.join(' '))}`)
      : ''
  return [`    ${pattern}) ${action}return ;;`]
}

function zsh(program: DescribedCommand): string[] {
  return [
    '#compdef sluice',
    '# Completion of sluice for zsh. Save it as _sluice in a folder of $fpath.',
    ...descendants(program).flatMap(zshFunction),
    ...zshFunction(program),
    '_sluice "$@"',
  ]
}

const zshName = ({ path }: DescribedCommand): string =>
  ['_sluice', ...path.split(' ').filter((word) => word !== '')].join('_').replaceAll('-', '_')

const zshText = (text: string): string => text.replaceAll(/[[\]:\\]/g, '\\$&')

function zshFunction(command: DescribedCommand): string[] {
  const specs = command.options.map(zshOption)
  if (command.commands.length === 0) {
    const rest = command.args === '' ? [] : [quote('*: :_files')]
    return [`${zshName(command)}() {`, `  _arguments ${[...specs, ...rest].join(' ')}`, '}']
  }
  return [
    `${zshName(command)}() {`,
    '  local line state',
    `  _arguments -C ${specs.join(' ')} '1: :->command' '*:: :->arguments'`,
    '  case $state in',
    '    command)',
    '      local -a commands=(',
    ...command.commands.map(
      ({ name, description }) => `        ${quote(`${name}:${zshText(summary(description))}`)}`,
    ),
    '      )',
    '      _describe command commands',
    '      ;;',
    '    arguments)',
    '      case $line[1] in',
    ...command.commands.map((child) => `        ${child.name}) ${zshName(child)} ;;`),
    '      esac',
    '      ;;',
    '  esac',
    '}',
  ]
}

function zshOption(option: DescribedOption): string {
  const values =
    option.choices.length > 0 ? `(${option.choices.join(' ')})` : isPath(option) ? '_files' : ' '
  const value = option.value === undefined ? '' : `:${zshText(option.value)}:${values}`
  const text = `[${zshText(summary(option.description))}]${value}`
  const prefix = option.isRepeatable ? '*' : `(${option.flags.join(' ')})`
  return option.flags.length === 1
    ? quote(`${option.isRepeatable ? '*' : ''}${option.flags[0]}${text}`)
    : `${quote(prefix)}{${option.flags.join(',')}}${quote(text)}`
}

function fish(program: DescribedCommand): string[] {
  return [
    '# Completion of sluice for fish. Load it with: sluice completion fish | source',
    'complete -c sluice -f',
    ...[program, ...descendants(program)].flatMap((command) => {
      const condition = fishCondition(command)
      return [
        ...command.commands.map(
          ({ name, description }) =>
            `complete -c sluice -n ${condition} -a ${name} -d ${fishQuote(summary(description))}`,
        ),
        ...command.options.map(
          (option) => `complete -c sluice -n ${condition} ${fishOption(option)}`,
        ),
        ...(command.args === '' ? [] : [`complete -c sluice -n ${condition} -F`]),
      ]
    }),
  ]
}

const fishQuote = (text: string): string => `'${text.replaceAll(/['\\]/g, '\\$&')}'`

/** Whether the words of the command are there and no word of a command below it. */
function fishCondition({ path, commands }: DescribedCommand): string {
  const words = path.split(' ').filter((word) => word !== '')
  const present = words.map((word) => `__fish_seen_subcommand_from ${word}`)
  const absent = commands.map(({ name }) => name).join(' ')
  const parts = absent === '' ? present : [...present, `not __fish_seen_subcommand_from ${absent}`]
  return fishQuote(parts.join('; and '))
}

function fishOption(option: DescribedOption): string {
  const { flags, value, choices, description } = option
  const names = flags.map((flag) => flag.replace(/^--/, '-l ').replace(/^-(?=\w$)/, '-s '))
  const suggested = choices.length > 0 ? ` -a ${fishQuote(choices.join(' '))}` : ''
  const takes = value === undefined ? '' : isPath(option) ? ' -r -F' : ` -x${suggested}`
  return `${names.join(' ')}${takes} -d ${fishQuote(summary(description))}`
}
