// What the commands of simulations have in common: they build what is stale, put in the defect of `--mutation`,
// and run the seeds, with `--processes N` in several processes. Exit code: 0 every seed passes, 1 one fails,
// 2 wrong usage.
import { spawn } from 'node:child_process'
import { enableCompileCache } from 'node:module'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buildIfNeeded, print, runCommand } from './run-command.mjs'

// Saves half of the time that a process takes to load the code.
enableCompileCache(join(import.meta.dirname, '..', 'dist', '.compile-cache', 'simulation'))

/** Runs the simulation in this folder of `test/`, and ends the process. */
export async function runSimulation(folder) {
  const noBuild = process.argv.indexOf('--no-build')
  if (noBuild > 0) process.argv.splice(noBuild, 1)
  else buildIfNeeded()
  const processes = process.argv.indexOf('--processes')
  if (processes > 0) {
    const args = process.argv.slice(2)
    const [, count] = args.splice(processes - 2, 2)
    if (count !== '1') process.exit(await runInProcesses(Number(count), args))
    process.argv.splice(processes, 2)
  } else if (isLong(process.argv)) {
    process.exit(await runInProcesses(availableParallelism(), process.argv.slice(2)))
  }
  const mutation = process.argv.indexOf('--mutation')
  if (mutation > 0) {
    const { mutate } = await import('../test/virtual-time/mutate.ts')
    const { mutations } = await import(`../test/${folder}/mutations.ts`)
    mutate(mutations, process.argv[mutation + 1])
  }
  const { command } = await import(`../test/${folder}/main.ts`)
  await runCommand(command)
}

/** Number of seeds from which several processes are faster, although each loads the code. */
const manySeeds = 200
/** Options with which the seeds run one after the other. */
const needsOrder = ['--mutation', '--trace', '--until']

function isLong(args) {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(args[args.indexOf('--seeds') + 1] ?? '') ?? []
  return to - from >= manySeeds && !needsOrder.some((option) => args.includes(option))
}

/** Gives each process a part of the seeds. Returns the highest exit code. */
async function runInProcesses(count, args) {
  const at = args.indexOf('--seeds')
  const range = /^(\d+)\.\.(\d+)$/.exec(args[at + 1] ?? '')
  if (!(Number.isInteger(count) && count > 0) || at < 0 || range === null) {
    print('--processes takes a whole number above 0, and needs --seeds FROM..TO')
    return 2
  }
  const [from, to] = [Number(range[1]), Number(range[2])]
  const size = Math.ceil((to - from + 1) / count)
  const parts = []
  for (let first = from; first <= to; first += size) {
    const seeds = `${first}..${Math.min(to, first + size - 1)}`
    const others = [...args.slice(0, at), ...args.slice(at + 2)]
    parts.push(runProcess([...others, '--seeds', seeds, '--processes', '1', '--no-build']))
  }
  const began = Date.now()
  const results = await Promise.all(parts)
  printSum(results, (Date.now() - began) / 1_000)
  return Math.max(...results.map(({ code }) => code))
}

/** Prints the sums of the numbers in the last lines of all processes, which are alike. */
function printSum(results, seconds) {
  const lasts = results.flatMap(({ sum }) => (sum === undefined ? [] : [sum]))
  if (lasts.length === 0) return
  const add = (numbers) => numbers.reduce((all, one) => all + one, 0)
  const names = lasts[0].counts.map(({ name }) => name)
  const counts = names.map((_, at) => add(lasts.map(({ counts }) => counts[at].count)))
  const text = names.map((name, at) => `${Number(counts[at].toFixed(1))} ${name}`).join(', ')
  const cpu = add(lasts.map(({ counts, cpu }) => counts[0].count * cpu)) / counts[0]
  const rate = (counts[0] / seconds).toFixed(1)
  print(`${text}; ${cpu.toFixed(3)} s of CPU a seed, ${rate} seeds a second`)
}

/** Reads the last line of a process. Returns undefined if it is another line. */
function sumIn(line) {
  const [, text, cpu] = /^(\d+ seeds, .*); ([\d.]+) s of CPU a seed/.exec(line) ?? []
  return text && { counts: text.split(', ').map(countIn), cpu: Number(cpu) }
}

function countIn(text) {
  const [number] = text.split(' ', 1)
  return { count: Number(number), name: text.slice(number.length + 1) }
}

function runProcess(args) {
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1], ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  // Whole lines, so that those of several processes do not mix.
  let sum
  createInterface({ input: child.stdout }).on('line', (line) => {
    const found = sumIn(line)
    if (found === undefined) print(line)
    else sum = found
  })
  return new Promise((resolve) => child.on('close', (code) => resolve({ code: code ?? 1, sum })))
}
