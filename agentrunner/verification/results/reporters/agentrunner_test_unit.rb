# A listener of test-unit's. The tool loads this file in place of its own of that name, which it loads first.
real = $LOAD_PATH.map { |folder| File.join(folder.to_s, 'test/unit/runner/console.rb') }
                 .find { |path| File.file?(path) && File.expand_path(path) != File.expand_path(__FILE__) }
require real if real
require_relative '../../../agentrunner_ruby'

# Attached to the mediator beside the tool's own listeners.
class AgentRunnerTestUnit < AgentRunnerReport
  OUTCOMES = { 'Failure' => 'failed', 'Error' => 'error', 'Omission' => 'skipped', 'Pending' => 'skipped' }.freeze

  def attach_to_mediator(mediator)
    unit = ::Test::Unit
    mediator.add_listener(unit::UI::TestRunnerMediator::STARTED) { |*| begun }
    mediator.add_listener(unit::TestCase::STARTED_OBJECT) { |test| test_begun(test) }
    mediator.add_listener(unit::TestResult::FAULT) { |fault| fault_seen(fault) }
    mediator.add_listener(unit::TestCase::FINISHED_OBJECT) { |test| test_ended(test) }
    mediator.add_listener(unit::UI::TestRunnerMediator::FINISHED) { |*| write({ k: 'end' }) }
  end

  def test_begun(test)
    @running, @fault = true, nil
    write({ k: 'begin', n: named(test) })
  end

  def fault_seen(fault)
    return unless (outcome = OUTCOMES[fault.class.name.to_s.split('::').last])
    return @fault ||= [outcome, fault] if @running

    test(fault.test_name.to_s, outcome, nil, nil, said(fault), nil)
  end

  def test_ended(test)
    outcome, fault = @fault || ['passed', nil]
    file, line = begin
      test.method(test.method_name).source_location
    rescue StandardError
      nil
    end
    test(named(test), outcome, file, line, fault && said(fault), fault && fault.location)
    @running, @fault = false, nil
  end

  def named(test)
    name(test.class, test.name.to_s.delete_suffix("(#{test.class.name})"))
  end

  def said(fault)
    fault.respond_to?(:exception) && fault.exception ? "#{fault.exception.class}: #{fault.message}" : fault.message
  end
end

Test::Unit::AutoRunner.setup_option do |auto_runner, _options|
  auto_runner.listeners << AgentRunnerTestUnit.new('minitest')
rescue StandardError
  nil
end
