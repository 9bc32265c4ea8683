import { describe, expect, it } from 'vitest'
import { isLogged, levelFor, parseLogFilter } from './log-filter.ts'

const level = (text: string, module: string) => {
  const filter = parseLogFilter(text)
  return filter && levelFor(filter, module)
}

describe('the log filter', () => {
  it.each([
    ['info', 'sluice', 'info'],
    ['INFO', 'sluice', 'info'],
    ['warn,sluice::xds=debug', 'sluice::xds', 'debug'],
    ['warn,sluice::xds=debug', 'sluice::xds::session', 'debug'],
    ['warn,sluice::xds=debug', 'sluice::xdsx', 'warn'],
    ['sluice=error,sluice::proxy=off', 'sluice::proxy', 'off'],
    ['sluice', 'sluice::proxy', 'trace'],
    ['other=debug', 'sluice', 'error'],
    ['sluice[span{a=1}]=debug', 'sluice', 'debug'],
    [' info , hyper=warn ', 'sluice', 'info'],
    ['', 'sluice', 'error'],
  ])('with the filter %j, the level of %s is %s', (text, module, expected) => {
    expect(level(text, module)).toBe(expected)
  })

  it.each(['very loud', 'sluice=loud', '=info', 'a b=info'])('rejects the filter %j', (text) => {
    expect(parseLogFilter(text)).toBeUndefined()
  })

  it('logs nothing if the level is off', () => {
    expect(isLogged('error', 'off')).toBe(false)
    expect(isLogged('error', 'warn')).toBe(true)
    expect(isLogged('info', 'warn')).toBe(false)
  })
})
