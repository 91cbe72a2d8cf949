# A reporter of Minitest's, which it finds by its name on the load path.
require_relative '../agentrunner_ruby'

# Asked by Minitest beside the reporters of its own.
class AgentRunnerMinitest < AgentRunnerReport
  alias start begun

  def prerecord(klass, name)
    write({ k: 'begin', n: name(klass, name) })
  end

  def record(result)
    klass = result.respond_to?(:klass) ? result.klass : result.class
    file, line = result.respond_to?(:source_location) ? result.source_location : nil
    outcome = result.skipped? ? 'skipped' : result.error? ? 'error' : result.passed? ? 'passed' : 'failed'
    said = result.failures.first
    test(name(klass, result.name), outcome, file, line, said && said.message, said && said.backtrace)
  end

  def report
    write({ k: 'end' })
  end

  def passed?
    true
  end
end

module Minitest
  def self.plugin_agentrunner_init(_options)
    reporter << AgentRunnerMinitest.new('minitest')
  rescue StandardError
    nil
  end
end
