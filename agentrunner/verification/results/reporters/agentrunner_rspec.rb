# Loaded by RSpec (`--require`), beside its formatters: a JSON object a line. It must never fail.
begin
  require_relative 'agentrunner_ruby'

  class AgentRunnerListener < AgentRunnerReport
    EVENTS = %i[start example_started example_passed example_failed example_pending message dump_summary close].freeze

    def initialize
      super('rspec')
      @ended = false
      begun
      hide
    end

    def start(_) end

    def example_started(notice)
      write({ k: 'begin', n: named(notice.example), f: file(notice.example) })
    end

    def example_passed(notice)
      result(notice.example, 'passed')
    end

    def example_failed(notice)
      error = notice.example.execution_result.exception
      result(notice.example, 'failed', error && "#{error.class}: #{error.message}", error && error.backtrace)
    end

    def example_pending(notice)
      run = notice.example.execution_result
      skipped = run.respond_to?(:example_skipped?) ? run.example_skipped? : true
      result(notice.example, skipped ? 'skipped' : 'xfailed')
    end

    def message(notice)
      found = notice.message.to_s[/An error occurred while loading (\S+?)\.?(?: - Did you mean\?)?$/, 1]
      return unless found
      path = found.sub(%r{\A\./}, '')
      write({ k: 'lost', n: path })
      test(path, 'error', path, nil, notice.message, nil)
    end

    def dump_summary(notice)
      outside = notice.respond_to?(:errors_outside_of_examples_count) ? notice.errors_outside_of_examples_count : 0
      cut = outside > 0 || (RSpec.world.respond_to?(:wants_to_quit) && RSpec.world.wants_to_quit)
      cut ||= notice.example_count < RSpec.world.example_count
      finish(cut)
    rescue StandardError
      finish(true)
    end

    def close(_)
      finish(true)
    end

    private

    def finish(cut)
      return if @ended
      @ended = true
      write({ k: 'end', cut: cut ? true : false })
    end

    def result(example, outcome, message = nil, backtrace = nil)
      test(named(example), outcome, file(example), example.metadata[:line_number], message, backtrace)
    end

    def file(example)
      path = example.metadata[:rerun_file_path] || example.metadata[:file_path]
      path.to_s.sub(%r{\A\./}, '')
    end

    def named(example)
      "#{file(example)} > #{example.full_description}"
    end

    def hide
      # Processes that a session starts are none of ours.
      rest = ENV['SPEC_OPTS'].to_s.sub(/\s*--require\s+\S*agentrunner_rspec\S*/, '').strip
      rest.empty? ? ENV.delete('SPEC_OPTS') : ENV['SPEC_OPTS'] = rest
    end
  end

  RSpec.configuration.formatter_loader.reporter.register_listener(
    AgentRunnerListener.new, *AgentRunnerListener::EVENTS
  )
rescue StandardError, LoadError, NotImplementedError
  nil
end
